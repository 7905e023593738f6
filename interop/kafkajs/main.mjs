// kafkajs. See ../README.md for what each feature asks. It knows no partitions without a group, so every
// reader is the only member of a group of its own. Codecs other than gzip are brought along, as it asks for.
import kafkajs from 'kafkajs'
import lz4 from 'lz4-napi'
import SnappyJS from 'snappyjs'
import * as zstd from '@bokuweb/zstd-wasm'

const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, Partitioners, logLevel } = kafkajs
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs
const [bootstrap, feature, name] = process.argv.slice(2)
const PATIENCE = 60_000
const FIRST_TIME = 1_600_000_000_000
const kafka = new Kafka({ clientId: 'interop', brokers: [bootstrap], logLevel: logLevel.NOTHING })
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds))

const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(await compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(await decompress(buffer)),
})
// Java's producers put a header of blocks around snappy; readers take both.
CompressionCodecs[CompressionTypes.Snappy] = codec(SnappyJS.compress, SnappyJS.uncompress)
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.compressFrame, lz4.decompressFrame)
CompressionCodecs[CompressionTypes.ZSTD] = codec(zstd.compress, zstd.decompress)
const CODECS = {
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const text = value => (value === null || value === undefined ? null : value.toString())

function record(partition, message) {
  const headers = Object.entries(message.headers ?? {}).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value]).map(one => [key, text(one)])
  )
  const { offset, key, value, timestamp } = message
  return { p: partition, o: Number(offset), k: text(key), v: text(value), h: headers, t: Number(timestamp) }
}

async function until(question, milliseconds = PATIENCE) {
  const deadline = Date.now() + milliseconds
  while (!(await question()) && Date.now() < deadline) await pause(50)
  return question()
}

const numbered = (suffix = '') =>
  Array.from({ length: 100 }, (_, n) => ({ key: `key-${n}`, value: `value-${n}${suffix}`, partition: n % 4 }))

async function send(messages, { topic = name, settings = {}, compression } = {}) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...settings })
  await producer.connect()
  await producer.send({ topic, messages, compression, acks: -1 })
  await producer.disconnect()
}

async function read(count, { topic = name, readUncommitted = true } = {}) {
  const found = []
  const groupId = `${name}-reader-${Math.random().toString(36).slice(2)}`
  const consumer = kafka.consumer({ groupId, readUncommitted, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => void found.push(record(partition, message)),
  })
  await until(() => found.length >= count)
  await pause(500)
  await consumer.disconnect()
  return found
}

async function produce(settings = {}) {
  await send(numbered(), { settings })
  return { records: await read(100) }
}

async function compressed() {
  if (feature === 'zstd') await zstd.init()
  await send(numbered(' compressible'.repeat(20)), { compression: CODECS[feature] })
  return { records: await read(100) }
}

async function headers() {
  const given = { a: ['1', '2'], empty: '', näme: 'wért' }
  await send([
    { value: 'with', partition: 0, headers: given },
    { value: 'out', partition: 0 },
  ])
  return { records: await read(2), without: ['null header values'] }
}

async function keys() {
  const messages = Array.from({ length: 50 }, (_, n) => ({ key: `key-${n}`, value: n < 49 ? `value-${n}` : null }))
  await send(messages)
  return { records: await read(50) }
}

async function timestamps() {
  const messages = Array.from({ length: 10 }, (_, n) => ({
    value: `${n}`,
    partition: 0,
    timestamp: `${FIRST_TIME + 1000 * n}`,
  }))
  await send(messages)
  await send(messages, { topic: `${name}-append` })
  const offsets = await administer(admin => admin.fetchTopicOffsetsByTimestamp(name, FIRST_TIME + 4500))
  return {
    records: await read(10),
    appended: await read(10, { topic: `${name}-append` }),
    offset: Number(offsets.find(at => at.partition === 0).offset),
  }
}

async function transactions() {
  const producer = kafka.producer({ transactionalId: name, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (const word of ['first', 'second', 'third']) {
    const transaction = await producer.transaction()
    const messages = [0, 1, 2, 3].map(n => ({ value: `${word}-${n}`, partition: n }))
    await transaction.send({ topic: name, messages })
    if (word === 'third') {
      const topics = [{ topic: name, partitions: [{ partition: 0, offset: '7' }] }]
      await transaction.sendOffsets({ consumerGroupId: name, topics })
    }
    await (word === 'second' ? transaction.abort() : transaction.commit())
  }
  await producer.disconnect()
  return { ...(await readCommitted(12)), committed: (await committed())[0] }
}

async function readCommitted(everything = 16) {
  return { records: await read(8, { readUncommitted: false }), all: await read(everything) }
}

async function committed() {
  const [found] = await administer(admin => admin.fetchOffsets({ groupId: name, topics: [name] }))
  return Object.fromEntries(found.partitions.map(at => [at.partition, Number(at.offset)]))
}

async function group() {
  const members = [0, 1].map(() => ({ found: [], partitions: [] }))
  await Promise.all(
    members.map(async member => {
      member.consumer = kafka.consumer({ groupId: name, maxWaitTimeInMs: 100 })
      await member.consumer.connect()
      await member.consumer.subscribe({ topic: name, fromBeginning: true })
      member.consumer.on(member.consumer.events.GROUP_JOIN, ({ payload }) => {
        member.partitions = payload.memberAssignment[name] ?? []
      })
      await member.consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => void member.found.push(record(partition, message)),
      })
    })
  )
  const own = member => member.found.filter(found => member.partitions.includes(found.p))
  await until(
    () =>
      members.every(member => member.partitions.length === 2) &&
      new Set(members.flatMap(own).map(found => found.v)).size === 100
  )
  const assigned = members.map(member => [...member.partitions])
  for (const member of members) {
    const ends = Object.fromEntries(own(member).map(found => [found.p, found.o + 1]))
    const offsets = Object.entries(ends).map(([partition, end]) => ({
      topic: name,
      partition: Number(partition),
      offset: `${end}`,
    }))
    await member.consumer.commitOffsets(offsets)
  }
  for (const member of members) await member.consumer.disconnect()
  return { assigned, records: members.flatMap(member => member.found), committed: await committed() }
}

async function old() {
  await send(numbered())
  const member = kafka.consumer({ groupId: name, maxWaitTimeInMs: 100 })
  const found = []
  await member.connect()
  await member.subscribe({ topic: name, fromBeginning: true })
  await member.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => void found.push(record(partition, message)),
  })
  await until(() => found.length >= 100)
  const ends = Object.entries(Object.fromEntries(found.map(({ p, o }) => [p, o + 1])))
  await member.commitOffsets(ends.map(([p, end]) => ({ topic: name, partition: Number(p), offset: `${end}` })))
  await member.disconnect()
  return { records: found, committed: (await committed())[0] }
}

async function administer(work) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

async function described(admin, topic, setting) {
  const asked = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: [setting] }
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [asked] })
  return resources[0].configEntries.find(entry => entry.configName === setting).configValue
}

const partitionsOf = async (admin, topic) =>
  (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length

async function topics(admin) {
  const topic = `${name}-new`
  const configEntries = [{ name: 'retention.ms', value: '100000' }]
  await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 1, configEntries }] })
  const listed = await until(async () => (await admin.listTopics()).includes(topic), 10_000)
  const partitions = await partitionsOf(admin, topic)
  const retention = await described(admin, topic, 'retention.ms')
  await admin.deleteTopics({ topics: [topic] })
  const gone = await until(async () => !(await admin.listTopics()).includes(topic), 10_000)
  return { partitions, retention, listed, gone }
}

// Its alterConfigs is Kafka's old request, which states the whole configuration: nothing is a reset.
async function configs(admin) {
  const setting = 'max.message.bytes'
  const alter = configEntries =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries }],
    })
  const before = await described(admin, name, setting)
  await alter([{ name: setting, value: '77777' }])
  await until(async () => (await described(admin, name, setting)) === '77777', 10_000)
  const set = await described(admin, name, setting)
  await alter([])
  await until(async () => (await described(admin, name, setting)) !== '77777', 10_000)
  return { before, set, after: await described(admin, name, setting) }
}

async function partitions(admin) {
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: 6 }] })
  await until(async () => (await partitionsOf(admin, name)) === 6, 10_000)
  return { partitions: await partitionsOf(admin, name) }
}

async function groups(admin) {
  const there = async () => (await admin.listGroups()).groups.some(found => found.groupId === name)
  const listed = await there()
  const state = (await admin.describeGroups([name])).groups[0].state
  await admin.deleteGroups([name])
  return { listed, state, gone: await until(async () => !(await there()), 10_000) }
}

async function offsets(admin) {
  const at = (await admin.fetchTopicOffsets(name)).find(found => found.partition === 0)
  const before = (await committed())[0]
  await admin.setOffsets({ groupId: name, topic: name, partitions: [{ partition: 0, offset: '10' }] })
  return {
    earliest: Number(at.low),
    latest: Number(at.high),
    committed: before,
    altered: (await committed())[0],
    without: ['deleting offsets'],
  }
}

async function records(admin) {
  await admin.fetchTopicOffsets(name) // without which it does not know who leads the partition
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '10' }] })
  const at = (await admin.fetchTopicOffsets(name)).find(found => found.partition === 0)
  return { earliest: Number(at.low) }
}

async function acls(admin) {
  const [kind, by] = [AclResourceTypes, ResourcePatternTypes]
  const [may, rule] = [AclOperationTypes, AclPermissionTypes]
  const [topic, principal] = [`${name}-new`, `User:${name}`]
  const WORDS =
    'resourceType resourceName resourcePatternType principal host operation permissionType'.split(' ')
  const words = rule => Object.fromEntries(WORDS.map((word, at) => [word, rule[at]]))
  const shown = rule => WORDS.map(word => rule[word])
  const described = async wanted =>
    (await admin.describeAcls(words(wanted))).resources.flatMap(on =>
      on.acls.map(one => shown({ ...on, ...one })),
    )
  const acl = [
    [kind.TOPIC, topic, by.LITERAL, principal, '*', may.READ, rule.ALLOW],
    [kind.TOPIC, topic, by.LITERAL, principal, '10.1.2.3', may.WRITE, rule.DENY],
    [kind.TOPIC, name, by.PREFIXED, principal, '*', may.DESCRIBE, rule.ALLOW],
    [kind.GROUP, name, by.LITERAL, principal, '*', may.READ, rule.ALLOW],
    [kind.TRANSACTIONAL_ID, name, by.LITERAL, principal, '10.1.2.3', may.ALL, rule.ALLOW],
  ]
  await admin.createAcls({ acl: acl.map(words) })
  const ofUser = [kind.ANY, undefined, by.ANY, principal, undefined, may.ANY, rule.ANY]
  await until(async () => (await described(ofUser)).length === 5, 10_000)
  const listed = await described(ofUser)
  const matching = await described([kind.TOPIC, topic, by.MATCH, undefined, undefined, may.ANY, rule.ANY])
  const filters = [
    [kind.TOPIC, topic, by.MATCH, undefined, undefined, may.ANY, rule.DENY],
    [kind.GROUP, name, by.LITERAL, undefined, undefined, may.ANY, rule.ANY],
  ]
  const { filterResponses } = await admin.deleteAcls({ filters: filters.map(words) })
  const deleted = filterResponses.flatMap(({ matchingAcls }) => matchingAcls.map(shown))
  await until(async () => (await described(ofUser)).length === 3, 10_000)
  return { listed, matching, deleted, left: await described(ofUser) }
}

const FEATURES = {
  produce,
  gzip: compressed,
  snappy: compressed,
  lz4: compressed,
  zstd: compressed,
  headers,
  keys,
  timestamps,
  idempotence: () => produce({ idempotent: true, maxInFlightRequests: 1 }),
  transactions,
  'read-committed': readCommitted,
  'group-classic': group,
  'old-versions': old,
  'admin-topics': () => administer(topics),
  'admin-configs': () => administer(configs),
  'admin-partitions': () => administer(partitions),
  'admin-groups': () => administer(groups),
  'admin-offsets': () => administer(offsets),
  'admin-records': () => administer(records),
  'admin-acls': () => administer(acls),
}

const report = await FEATURES[feature]()
process.stdout.write(JSON.stringify(report) + '\n', () => process.exit(0))
