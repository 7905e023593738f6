// @confluentinc/kafka-javascript, by its promise API. See ../README.md for what each feature asks. Its consumers
// always belong to a group, so every reader is the only member of a group of its own.
import confluent from '@confluentinc/kafka-javascript'

const { Kafka, logLevel } = confluent.KafkaJS
const [bootstrap, feature, name] = process.argv.slice(2)
const PATIENCE = 60_000
const FIRST_TIME = 1_600_000_000_000
const base = { kafkaJS: { clientId: 'interop', brokers: [bootstrap], logLevel: logLevel.NOTHING } }
const kafka = new Kafka(base)
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds))

const text = value => (value === null || value === undefined ? null : value.toString())

function record(partition, { offset, key, value, headers, timestamp }) {
  const pairs = Object.entries(headers ?? {}).flatMap(([header, content]) =>
    (Array.isArray(content) ? content : [content]).map(one => [header, text(one)])
  )
  return { p: partition, o: Number(offset), k: text(key), v: text(value), h: pairs, t: Number(timestamp) }
}

async function until(question, milliseconds = PATIENCE) {
  const deadline = Date.now() + milliseconds
  while (!(await question()) && Date.now() < deadline) await pause(50)
  return question()
}

const numbered = (suffix = '') =>
  Array.from({ length: 100 }, (_, n) => ({ key: `key-${n}`, value: `value-${n}${suffix}`, partition: n % 4 }))

async function send(messages, { topic = name, kafkaJS = {}, settings = {} } = {}) {
  const producer = kafka.producer({ kafkaJS: { acks: -1, ...kafkaJS }, 'linger.ms': 5, ...settings })
  await producer.connect()
  await producer.send({ topic, messages })
  await producer.disconnect()
}

class Member {
  found = []
  changes = 0

  constructor(settings = {}, kafkaJS = {}) {
    this.consumer = kafka.consumer({
      kafkaJS: { groupId: name, fromBeginning: true, autoCommit: false, maxWaitTimeInMs: 100, ...kafkaJS },
      rebalance_cb: () => void this.changes++,
      ...settings,
    })
  }

  async join(topic = name) {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [topic] })
    await this.consumer.run({
      eachMessage: async ({ partition, message }) => void this.found.push(record(partition, message)),
    })
    return this
  }

  get partitions() {
    return this.consumer.assignment().map(at => at.partition)
  }

  async commit() {
    const own = this.partitions
    const ends = new Map(this.found.filter(found => own.includes(found.p)).map(found => [found.p, found.o + 1]))
    const offsets = [...ends].map(([partition, end]) => ({ topic: name, partition, offset: `${end}` }))
    await this.consumer.commitOffsets(offsets)
  }

  close() {
    return this.consumer.disconnect()
  }
}

async function read(count, { topic = name, readUncommitted = true } = {}) {
  const groupId = `${name}-reader-${Math.random().toString(36).slice(2)}`
  const member = await new Member({}, { groupId, readUncommitted }).join(topic)
  await until(() => member.found.length >= count)
  await pause(500)
  await member.close()
  return member.found
}

async function produce(kafkaJS) {
  await send(numbered(), { kafkaJS })
  return { records: await read(100) }
}

async function compressed() {
  if (!confluent.features.includes(feature)) {
    console.error(`this librdkafka was built without ${feature}`)
    process.exit(3)
  }
  await send(numbered(' compressible'.repeat(20)), { kafkaJS: { compression: feature } })
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
  await send(messages, { settings: { partitioner: 'murmur2_random' } })
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
  const producer = kafka.producer({ kafkaJS: { transactionalId: name } })
  await producer.connect()
  const member = await new Member().join()
  for (const word of ['first', 'second', 'third']) {
    const transaction = await producer.transaction()
    const messages = [0, 1, 2, 3].map(n => ({ value: `${word}-${n}`, partition: n }))
    await transaction.send({ topic: name, messages })
    if (word === 'third') {
      const topics = [{ topic: name, partitions: [{ partition: 0, offset: '7' }] }]
      await until(() => member.partitions.length === 4)
      await transaction.sendOffsets({ consumer: member.consumer, topics })
    }
    await (word === 'second' ? transaction.abort() : transaction.commit())
  }
  await member.close()
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

async function staticMembers() {
  const join = suffix =>
    new Member({ 'group.instance.id': `${name}-${suffix}` }, { sessionTimeout: 30_000 }).join()
  const [first, other] = await Promise.all([join('a'), join('b')])
  await until(() => first.partitions.length === 2 && other.partitions.length === 2)
  const before = first.partitions
  const kept = other.partitions
  await first.close()
  other.changes = 0
  const again = await join('a')
  await until(() => again.partitions.length === 2)
  await pause(500)
  const report = { before, other: kept, after: again.partitions, rebalances: other.changes }
  await again.close()
  await other.close()
  return report
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
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

const partitionsOf = async (admin, topic) =>
  (await admin.fetchTopicMetadata({ topics: [topic] })).find(found => found.name === topic).partitions.length

async function topics(admin) {
  const topic = `${name}-new`
  const configEntries = [{ name: 'retention.ms', value: '100000' }]
  await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 1, configEntries }] })
  const listed = await until(async () => (await admin.listTopics()).includes(topic), 10_000)
  const partitions = await partitionsOf(admin, topic)
  await admin.deleteTopics({ topics: [topic] })
  const gone = await until(async () => !(await admin.listTopics()).includes(topic), 10_000)
  return { partitions, listed, gone, without: ['describing configurations'] }
}

async function groups(admin) {
  const there = async () => (await admin.listGroups()).groups.some(found => found.groupId === name)
  const listed = await there()
  const { state } = (await admin.describeGroups([name])).groups[0]
  await admin.deleteGroups([name])
  const names = Object.entries(confluent.KafkaJS.ConsumerGroupStates)
  const word = names.find(([, number]) => number === state)?.[0] ?? state
  return { listed, state: word, gone: await until(async () => !(await there()), 10_000) }
}

async function offsets(admin) {
  const at = (await admin.fetchTopicOffsets(name)).find(found => found.partition === 0)
  return {
    earliest: Number(at.low),
    latest: Number(at.high),
    committed: (await committed())[0],
    without: ['altering offsets', 'deleting offsets'],
  }
}

async function records(admin) {
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '10' }] })
  const at = (await admin.fetchTopicOffsets(name)).find(found => found.partition === 0)
  return { earliest: Number(at.low) }
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
  'group-classic': () => group({ 'group.protocol': 'classic' }),
  'group-consumer': () => group({ 'group.protocol': 'consumer' }),
  static: staticMembers,
  'old-versions': old,
  'admin-topics': () => administer(topics),
  'admin-groups': () => administer(groups),
  'admin-offsets': () => administer(offsets),
  'admin-records': () => administer(records),
}

const report = await FEATURES[feature]()
process.stdout.write(JSON.stringify(report) + '\n', () => process.exit(0))
