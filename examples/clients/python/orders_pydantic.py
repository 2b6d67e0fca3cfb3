"""Does what orders.py does, with a Pydantic model as the schema and as the type of records.

    python3 orders_pydantic.py HOST:PORT

It runs with version 2 of Pydantic and with version 1.
"""

import sys

import orders
import pydantic


class Order(pydantic.BaseModel):
    """An order. What a document does not say is None."""

    seller: str
    total: float | None = None


def schema_of(model):
    """Returns the JSON Schema of a model, which a job takes as it is."""
    if hasattr(model, "model_json_schema"):
        return model.model_json_schema()
    return model.schema()  # version 1


def main(target):
    result = orders.run(target, schema_of(Order))
    found = [(Order(**record), record["_citations"]) for record in result["aggregated_data"]]
    for order, citations in sorted(found, key=lambda pair: pair[0].seller):
        cited = result["citations"][citations["total"][0]]
        print(order.seller, order.total, "from", cited["document_id"], repr(cited["quote"]))


if __name__ == "__main__":
    main(sys.argv[1])
