"""Our own small Kafka client, on asyncio: what the command line and the other doors talk through.

It speaks to any Kafka of the last years, in the best version of each request that both sides know.

    async with Cluster("localhost:9092") as cluster:
        async with Producer(cluster) as producer:
            delivery = await producer.send("greetings", b"hello")
            print(await delivery.offset())

`blocking` is the same on plain sockets, for those who have no event loop.
"""
