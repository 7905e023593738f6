"""Change events to a Delta table that is as the last change left it, and a compacted topic as a table."""

from ottla.pipelines import flow, read, sinks

CHANGE = "id long, version long, name string, city string, deleted boolean"


@flow(sink=sinks.delta("out/customers", key="id", order_by="version", delete_when="deleted"))
def customers(spark):
    """One row for each customer. A change that comes late, or twice, changes nothing."""
    return read.topic("customers.changes", decode=read.json(CHANGE))


@flow(sink=sinks.delta("out/prices", key="key", order_by="offset", delete_when="price IS NULL"))
def prices(spark):
    """The table that a compacted topic is: the last value of each key; no value deletes the key.

    Records of a key are in one partition, so the offset says which of two is the later one.
    """
    return read.topic(
        "prices", key=read.string(), decode=read.json("price double"), keep=["offset"], tombstones=True
    )
