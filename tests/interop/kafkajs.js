// What kafkajs does with a broker, for tests/interop/test_kafkajs.py: node kafkajs.js BOOTSTRAP TOPIC GROUP
// Prints what it saw as one line of JSON.

const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, group] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "kafkajs", brokers: [bootstrap], logLevel: logLevel.ERROR });
const COUNT = 100;

async function send() {
  const producer = kafka.producer();
  await producer.connect();
  const messages = [...Array(COUNT).keys()].map((n) => ({ value: `plain-${n}`, partition: n % 4 }));
  await producer.send({ topic, messages });
  await producer.disconnect();

  const transactional = kafka.producer({
    transactionalId: `${group}-id`, idempotent: true, maxInFlightRequests: 1,
  });
  await transactional.connect();
  for (const end of ["abort", "commit"]) {
    const transaction = await transactional.transaction();
    const records = [...Array(4).keys()].map((n) => ({ value: `${end}-${n}`, partition: n }));
    await transaction.send({ topic, messages: records });
    const topics = [{ topic, partitions: [{ partition: 0, offset: end === "abort" ? "5" : "3" }] }];
    await transaction.sendOffsets({ consumerGroupId: `${group}-source`, topics });
    await transaction[end]();
  }
  await transactional.disconnect();
}

async function consume() {
  const seen = {};
  const owned = {};
  const members = ["one", "two"].map((name) => {
    const consumer = kafka.consumer({
      groupId: group, sessionTimeout: 6000, heartbeatInterval: 100, maxWaitTimeInMs: 100,
    });
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      owned[name] = payload.memberAssignment[topic] || [];
    });
    return { name, consumer };
  });
  for (const { consumer } of members) {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => {
        const value = message.value.toString();
        seen[value] = (seen[value] || 0) + 1;
      },
    });
  }
  const settled = () =>
    Object.keys(seen).length >= COUNT + 4 && members.every(({ name }) => owned[name]?.length === 2);
  while (!settled()) await new Promise((resolve) => setTimeout(resolve, 20));
  const result = { seen: Object.keys(seen), owned: structuredClone(owned) };
  for (const { consumer } of members) await consumer.disconnect();
  return result;
}

async function main() {
  await send();
  const result = await consume();
  const admin = kafka.admin();
  await admin.connect();
  const offsets = async (groupId) => {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
    return Object.fromEntries(found.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  };
  result.offsets = await offsets(group);
  result.source = await offsets(`${group}-source`);
  const { groups } = await admin.describeGroups([group]);
  result.state = groups[0].state;
  await admin.disconnect();
  console.log(JSON.stringify(result));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
