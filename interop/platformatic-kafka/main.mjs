// @platformatic/kafka. See ../README.md for what each feature asks. A stream of its consumer always belongs to
// a group, so every reader is the only member of a group of its own.
import {
  AclOperations,
  AclPermissionTypes,
  Admin,
  Consumer,
  ConfigResourceTypes,
  FetchIsolationLevels,
  IncrementalAlterConfigOperationTypes,
  ListOffsetTimestamps,
  MessagesStreamFallbackModes,
  MessagesStreamModes,
  Producer,
  ResourcePatternTypes,
  ResourceTypes,
  stringDeserializers,
  stringSerializers,
} from '@platformatic/kafka'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import zlib from 'node:zlib'

const [bootstrap, feature, name] = process.argv.slice(2)
const PATIENCE = 60_000
const FIRST_TIME = 1_600_000_000_000n
const base = { clientId: 'interop', bootstrapBrokers: [bootstrap] }
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds))

function record({ partition, offset, key, value, headers, timestamp }) {
  const text = one => (one === undefined || one === null ? null : one.toString())
  const pairs = [...headers].map(([header, content]) => [text(header), text(content)])
  return { p: partition, o: Number(offset), k: text(key), v: text(value), h: pairs, t: Number(timestamp) }
}

async function until(question, milliseconds = PATIENCE) {
  const deadline = Date.now() + milliseconds
  while (!(await question()) && Date.now() < deadline) await pause(50)
  return question()
}

const numbered = (suffix = '') =>
  Array.from({ length: 100 }, (_, n) => ({
    topic: name,
    key: `key-${n}`,
    value: `value-${n}${suffix}`,
    partition: n % 4,
  }))

const newProducer = settings => new Producer({ ...base, serializers: stringSerializers, ...settings })

async function send(messages, settings = {}) {
  const producer = newProducer(settings)
  await producer.send({ messages, acks: -1 })
  await producer.close()
}

class Member {
  found = []
  changes = 0

  constructor(settings = {}) {
    this.consumer = new Consumer({
      ...base,
      groupId: name,
      deserializers: stringDeserializers,
      maxWaitTime: 100,
      ...settings,
    })
    this.consumer.on('consumer:group:join', () => this.changes++)
  }

  async join(topic = name, settings = {}) {
    this.stream = await this.consumer.consume({
      topics: [topic],
      autocommit: false,
      mode: MessagesStreamModes.COMMITTED,
      fallbackMode: MessagesStreamFallbackModes.EARLIEST,
      ...settings,
    })
    this.stream.on('data', message => {
      this.last = message
      this.found.push(record(message))
    })
    this.stream.on('error', () => {})
    return this
  }

  get partitions() {
    return (this.consumer.assignments ?? []).flatMap(assignment => assignment.partitions)
  }

  async commit() {
    const own = this.partitions
    const ends = new Map(this.found.filter(found => own.includes(found.p)).map(found => [found.p, found.o + 1]))
    const offsets = [...ends].map(([partition, end]) => ({
      topic: name,
      partition,
      offset: BigInt(end),
      leaderEpoch: 0,
    }))
    await this.consumer.commit({ offsets })
  }

  close() {
    return this.consumer.close(true)
  }
}

async function read(count, topic = name, isolationLevel = FetchIsolationLevels.READ_UNCOMMITTED) {
  const groupId = `${name}-reader-${Math.random().toString(36).slice(2)}`
  const member = await new Member({ groupId }).join(topic, { isolationLevel })
  await until(() => member.found.length >= count)
  await pause(500)
  await member.close()
  return member.found
}

async function produce(settings) {
  await send(numbered(), settings)
  return { records: await read(100) }
}

async function compressed() {
  if (feature === 'zstd' && !zlib.zstdCompressSync) {
    console.error(`zstd needs Node.js 22.15, this is ${process.version}`)
    process.exit(3)
  }
  await send(numbered(' compressible'.repeat(20)), { compression: feature })
  return { records: await read(100) }
}

async function headers() {
  const given = { a: '2', empty: '', näme: 'wért', null: null }
  await send([
    { topic: name, value: 'with', partition: 0, headers: given },
    { topic: name, value: 'out', partition: 0 },
  ])
  return { records: await read(2), without: ['repeated header names'] }
}

async function keys() {
  const messages = Array.from({ length: 50 }, (_, n) => ({
    topic: name,
    key: `key-${n}`,
    value: n < 49 ? `value-${n}` : undefined,
  }))
  await send(messages)
  return { records: await read(50) }
}

async function timestamps() {
  for (const topic of [name, `${name}-append`]) {
    const messages = Array.from({ length: 10 }, (_, n) => ({
      topic,
      value: `${n}`,
      partition: 0,
      timestamp: FIRST_TIME + 1000n * BigInt(n),
    }))
    await send(messages)
  }
  const offset = await administer(admin => offsetAt(admin, FIRST_TIME + 4500n))
  return { records: await read(10), appended: await read(10, `${name}-append`), offset }
}

async function transactions() {
  const producer = newProducer({ transactionalId: name, idempotent: true })
  for (const word of ['first', 'second', 'third']) {
    const transaction = await producer.beginTransaction()
    const messages = [0, 1, 2, 3].map(n => ({ topic: name, value: `${word}-${n}`, partition: n }))
    await transaction.send({ messages })
    if (word === 'third') {
      const member = await new Member().join()
      await until(() => member.last)
      await transaction.addConsumer(member.consumer)
      // The offset of a message read; one more is what the group then has.
      await transaction.addOffset({ ...member.last, topic: name, partition: 0, offset: 6n })
      await transaction.commit()
      await member.close()
    } else {
      await (word === 'second' ? transaction.abort() : transaction.commit())
    }
  }
  await producer.close()
  return { ...(await readCommitted(12)), committed: (await committed())[0] }
}

async function readCommitted(everything = 16) {
  return { records: await read(8, name, FetchIsolationLevels.READ_COMMITTED), all: await read(everything) }
}

async function committed() {
  const [found] = await administer(admin => admin.listConsumerGroupOffsets({ groups: [name] }))
  const partitions = found.topics.find(topic => topic.name === name)?.partitions ?? []
  return Object.fromEntries(partitions.map(at => [at.partitionIndex, Number(at.committedOffset)]))
}

async function group(settings) {
  const members = await Promise.all([0, 1].map(() => new Member(settings).join()))
  const own = member => member.found.filter(found => member.partitions.includes(found.p))
  await until(
    () =>
      members.every(member => member.partitions.length === 2) &&
      new Set(members.flatMap(own).map(found => found.v)).size === 100
  )
  const assigned = members.map(member => member.partitions)
  for (const member of members) await member.commit()
  for (const member of members) await member.close()
  return { assigned, records: members.flatMap(member => member.found), committed: await committed() }
}

const joinAs = suffix => new Member({ groupInstanceId: `${name}-${suffix}`, sessionTimeout: 30_000 }).join()

// Closing a consumer always leaves the group, so the one that is to come back is a process, and is killed.
async function staticMembers() {
  const first = spawn(process.execPath, [process.argv[1], bootstrap, 'static-member', name])
  const heard = { lines: [] }
  createInterface(first.stdout).on('line', line => heard.lines.push(JSON.parse(line)))
  const other = await joinAs('b')
  await until(() => heard.lines.at(-1)?.length === 2 && other.partitions.length === 2)
  const before = heard.lines.at(-1)
  const kept = other.partitions
  first.kill('SIGKILL')
  other.changes = 0
  const again = await joinAs('a')
  await until(() => again.partitions.length === 2)
  await pause(500)
  return { before, other: kept, after: again.partitions, rebalances: other.changes }
}

async function staticMember() {
  const member = await joinAs('a')
  for (;;) {
    console.log(JSON.stringify(member.partitions))
    await pause(50)
  }
}

async function old() {
  await send(numbered())
  const member = await new Member().join()
  await until(() => member.found.length >= 100)
  await member.commit()
  await member.close()
  return { records: member.found, committed: (await committed())[0] }
}

async function administer(work) {
  const admin = new Admin(base)
  try {
    return await work(admin)
  } finally {
    await admin.close()
  }
}

async function offsetAt(admin, timestamp) {
  const topics = [{ name, partitions: [{ partitionIndex: 0, timestamp }] }]
  const [found] = await admin.listOffsets({ topics })
  return Number(found.partitions[0].offset)
}

async function described(admin, topic, setting) {
  const asked = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configurationKeys: [setting] }
  const [found] = await admin.describeConfigs({ resources: [asked] })
  return found.configs.find(entry => entry.name === setting).value
}

const partitionsOf = async (admin, topic) =>
  (await admin.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic).partitionsCount

async function topics(admin) {
  const topic = `${name}-new`
  const configs = [{ name: 'retention.ms', value: '100000' }]
  await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1, configs })
  const listed = await until(async () => (await admin.listTopics()).includes(topic), 10_000)
  const partitions = await partitionsOf(admin, topic)
  const retention = await described(admin, topic, 'retention.ms')
  await admin.deleteTopics({ topics: [topic] })
  const gone = await until(async () => !(await admin.listTopics()).includes(topic), 10_000)
  return { partitions, retention, listed, gone }
}

async function configs(admin) {
  const setting = 'max.message.bytes'
  const alter = (configOperation, value) =>
    admin.incrementalAlterConfigs({
      resources: [
        {
          resourceType: ConfigResourceTypes.TOPIC,
          resourceName: name,
          configs: [{ name: setting, configOperation, value }],
        },
      ],
    })
  const before = await described(admin, name, setting)
  await alter(IncrementalAlterConfigOperationTypes.SET, '77777')
  await until(async () => (await described(admin, name, setting)) === '77777', 10_000)
  const set = await described(admin, name, setting)
  await alter(IncrementalAlterConfigOperationTypes.DELETE, null)
  await until(async () => (await described(admin, name, setting)) !== '77777', 10_000)
  return { before, set, after: await described(admin, name, setting) }
}

async function partitions(admin) {
  await admin.createPartitions({ topics: [{ name, count: 6, assignments: null }] })
  await until(async () => (await partitionsOf(admin, name)) === 6, 10_000)
  return { partitions: await partitionsOf(admin, name) }
}

async function groups(admin) {
  const there = async () => (await admin.listGroups()).has(name)
  const listed = await there()
  const state = (await admin.describeGroups({ groups: [name] })).get(name).state
  await admin.deleteGroups({ groups: [name] })
  return { listed, state, gone: await until(async () => !(await there()), 10_000) }
}

async function offsets(admin) {
  const earliest = await offsetAt(admin, ListOffsetTimestamps.EARLIEST)
  const latest = await offsetAt(admin, ListOffsetTimestamps.LATEST)
  const before = (await committed())[0]
  const topics = [{ name, partitionOffsets: [{ partition: 0, offset: 10n }] }]
  await admin.alterConsumerGroupOffsets({ groupId: name, topics })
  const altered = (await committed())[0]
  await admin.deleteConsumerGroupOffsets({ groupId: name, topics: [{ name, partitionIndexes: [0] }] })
  const left = (await committed())[0]
  return { earliest, latest, committed: before, altered, deleted: left === undefined || left < 0 }
}

async function records(admin) {
  await admin.deleteRecords({ topics: [{ name, partitions: [{ partition: 0, offset: 10n }] }] })
  return { earliest: await offsetAt(admin, ListOffsetTimestamps.EARLIEST) }
}

async function acls(admin) {
  const [kind, by, may, rule] = [ResourceTypes, ResourcePatternTypes, AclOperations, AclPermissionTypes]
  const [topic, principal] = [`${name}-new`, `User:${name}`]
  const WORDS =
    'resourceType resourceName resourcePatternType principal host operation permissionType'.split(' ')
  const words = rule => Object.fromEntries(WORDS.map((word, at) => [word, rule[at]]))
  const shown = rule => WORDS.map(word => rule[word])
  const described = async wanted =>
    (await admin.describeAcls({ filter: words(wanted) })).flatMap(on => on.acls.map(one => shown({ ...on, ...one })))
  const creations = [
    [kind.TOPIC, topic, by.LITERAL, principal, '*', may.READ, rule.ALLOW],
    [kind.TOPIC, topic, by.LITERAL, principal, '10.1.2.3', may.WRITE, rule.DENY],
    [kind.TOPIC, name, by.PREFIXED, principal, '*', may.DESCRIBE, rule.ALLOW],
    [kind.GROUP, name, by.LITERAL, principal, '*', may.READ, rule.ALLOW],
    [kind.TRANSACTIONAL_ID, name, by.LITERAL, principal, '10.1.2.3', may.ALL, rule.ALLOW],
  ]
  await admin.createAcls({ creations: creations.map(words) })
  const ofUser = [kind.ANY, null, by.ANY, principal, null, may.ANY, rule.ANY]
  await until(async () => (await described(ofUser)).length === 5, 10_000)
  const listed = await described(ofUser)
  const matching = await described([kind.TOPIC, topic, by.MATCH, null, null, may.ANY, rule.ANY])
  const filters = [
    [kind.TOPIC, topic, by.MATCH, null, null, may.ANY, rule.DENY],
    [kind.GROUP, name, by.LITERAL, null, null, may.ANY, rule.ANY],
  ]
  const deleted = (await admin.deleteAcls({ filters: filters.map(words) })).map(shown)
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
  idempotence: () => produce({ idempotent: true }),
  transactions,
  'read-committed': readCommitted,
  'group-classic': () => group({}),
  'group-consumer': () => group({ groupProtocol: 'consumer' }),
  static: staticMembers,
  'static-member': staticMember,
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
