"""The kinds of differences between two JSON Schemas, with Confluent's names for them, and which of them keep
data that was written with the one from being read with the other."""

from __future__ import annotations

from enum import Enum, auto


class Change(Enum):
    ID_CHANGED = auto()
    TITLE_CHANGED = auto()
    DESCRIPTION_CHANGED = auto()
    DEFAULT_CHANGED = auto()
    SCHEMA_ADDED = auto()
    SCHEMA_REMOVED = auto()
    TYPE_EXTENDED = auto()
    TYPE_NARROWED = auto()
    TYPE_CHANGED = auto()

    MAX_LENGTH_ADDED = auto()
    MAX_LENGTH_REMOVED = auto()
    MAX_LENGTH_INCREASED = auto()
    MAX_LENGTH_DECREASED = auto()
    MIN_LENGTH_ADDED = auto()
    MIN_LENGTH_REMOVED = auto()
    MIN_LENGTH_INCREASED = auto()
    MIN_LENGTH_DECREASED = auto()
    PATTERN_ADDED = auto()
    PATTERN_REMOVED = auto()
    PATTERN_CHANGED = auto()

    MAXIMUM_ADDED = auto()
    MAXIMUM_REMOVED = auto()
    MAXIMUM_INCREASED = auto()
    MAXIMUM_DECREASED = auto()
    MINIMUM_ADDED = auto()
    MINIMUM_REMOVED = auto()
    MINIMUM_INCREASED = auto()
    MINIMUM_DECREASED = auto()
    EXCLUSIVE_MAXIMUM_ADDED = auto()
    EXCLUSIVE_MAXIMUM_REMOVED = auto()
    EXCLUSIVE_MAXIMUM_INCREASED = auto()
    EXCLUSIVE_MAXIMUM_DECREASED = auto()
    EXCLUSIVE_MINIMUM_ADDED = auto()
    EXCLUSIVE_MINIMUM_REMOVED = auto()
    EXCLUSIVE_MINIMUM_INCREASED = auto()
    EXCLUSIVE_MINIMUM_DECREASED = auto()
    MULTIPLE_OF_ADDED = auto()
    MULTIPLE_OF_REMOVED = auto()
    MULTIPLE_OF_EXPANDED = auto()
    MULTIPLE_OF_REDUCED = auto()
    MULTIPLE_OF_CHANGED = auto()

    REQUIRED_ATTRIBUTE_ADDED = auto()
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED = auto()
    REQUIRED_ATTRIBUTE_REMOVED = auto()
    MAX_PROPERTIES_ADDED = auto()
    MAX_PROPERTIES_REMOVED = auto()
    MAX_PROPERTIES_INCREASED = auto()
    MAX_PROPERTIES_DECREASED = auto()
    MIN_PROPERTIES_ADDED = auto()
    MIN_PROPERTIES_REMOVED = auto()
    MIN_PROPERTIES_INCREASED = auto()
    MIN_PROPERTIES_DECREASED = auto()
    ADDITIONAL_PROPERTIES_ADDED = auto()
    ADDITIONAL_PROPERTIES_REMOVED = auto()
    ADDITIONAL_PROPERTIES_EXTENDED = auto()
    ADDITIONAL_PROPERTIES_NARROWED = auto()
    UNEVALUATED_PROPERTIES_ADDED = auto()
    UNEVALUATED_PROPERTIES_REMOVED = auto()
    UNEVALUATED_PROPERTIES_EXTENDED = auto()
    UNEVALUATED_PROPERTIES_NARROWED = auto()
    DEPENDENCY_ARRAY_ADDED = auto()
    DEPENDENCY_ARRAY_REMOVED = auto()
    DEPENDENCY_ARRAY_EXTENDED = auto()
    DEPENDENCY_ARRAY_NARROWED = auto()
    DEPENDENCY_ARRAY_CHANGED = auto()
    DEPENDENCY_SCHEMA_ADDED = auto()
    DEPENDENCY_SCHEMA_REMOVED = auto()
    REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()

    MAX_ITEMS_ADDED = auto()
    MAX_ITEMS_REMOVED = auto()
    MAX_ITEMS_INCREASED = auto()
    MAX_ITEMS_DECREASED = auto()
    MIN_ITEMS_ADDED = auto()
    MIN_ITEMS_REMOVED = auto()
    MIN_ITEMS_INCREASED = auto()
    MIN_ITEMS_DECREASED = auto()
    MAX_CONTAINS_ADDED = auto()
    MAX_CONTAINS_REMOVED = auto()
    MAX_CONTAINS_INCREASED = auto()
    MAX_CONTAINS_DECREASED = auto()
    MIN_CONTAINS_ADDED = auto()
    MIN_CONTAINS_REMOVED = auto()
    MIN_CONTAINS_INCREASED = auto()
    MIN_CONTAINS_DECREASED = auto()
    UNIQUE_ITEMS_ADDED = auto()
    UNIQUE_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_ADDED = auto()
    ADDITIONAL_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_EXTENDED = auto()
    ADDITIONAL_ITEMS_NARROWED = auto()
    UNEVALUATED_ITEMS_ADDED = auto()
    UNEVALUATED_ITEMS_REMOVED = auto()
    UNEVALUATED_ITEMS_EXTENDED = auto()
    UNEVALUATED_ITEMS_NARROWED = auto()
    ITEM_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_TO_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()

    ENUM_ARRAY_EXTENDED = auto()
    ENUM_ARRAY_NARROWED = auto()
    ENUM_ARRAY_CHANGED = auto()

    COMBINED_TYPE_EXTENDED = auto()
    COMBINED_TYPE_CHANGED = auto()
    COMBINED_TYPE_SUBSCHEMAS_CHANGED = auto()
    PRODUCT_TYPE_EXTENDED = auto()
    PRODUCT_TYPE_NARROWED = auto()
    SUM_TYPE_EXTENDED = auto()
    SUM_TYPE_NARROWED = auto()
    NOT_TYPE_EXTENDED = auto()
    NOT_TYPE_NARROWED = auto()


_NEW_LIMIT = "the reader has a restriction that the writer has not"
_TIGHTER = "the reader's limit is tighter than the writer's"
_SOME_OTHERS = "the writer may write any other property, the reader takes only some"
_FEWER = "the reader takes less than the writer may write"

# What a reader cannot live with. What is not here is compatible.
INCOMPATIBLE = {
    Change.SCHEMA_ADDED: _NEW_LIMIT,
    Change.TYPE_NARROWED: "the writer writes numbers, the reader takes integers only",
    Change.TYPE_CHANGED: "the types differ",
    Change.MAX_LENGTH_ADDED: _NEW_LIMIT,
    Change.MAX_LENGTH_DECREASED: _TIGHTER,
    Change.MIN_LENGTH_ADDED: _NEW_LIMIT,
    Change.MIN_LENGTH_INCREASED: _TIGHTER,
    Change.PATTERN_ADDED: _NEW_LIMIT,
    Change.PATTERN_CHANGED: "the patterns differ",
    Change.MAXIMUM_ADDED: _NEW_LIMIT,
    Change.MAXIMUM_DECREASED: _TIGHTER,
    Change.MINIMUM_ADDED: _NEW_LIMIT,
    Change.MINIMUM_INCREASED: _TIGHTER,
    Change.EXCLUSIVE_MAXIMUM_ADDED: _NEW_LIMIT,
    Change.EXCLUSIVE_MAXIMUM_DECREASED: _TIGHTER,
    Change.EXCLUSIVE_MINIMUM_ADDED: _NEW_LIMIT,
    Change.EXCLUSIVE_MINIMUM_INCREASED: _TIGHTER,
    Change.MULTIPLE_OF_ADDED: _NEW_LIMIT,
    Change.MULTIPLE_OF_EXPANDED: _TIGHTER,
    Change.MULTIPLE_OF_CHANGED: "neither of the divisors is a multiple of the other",
    Change.REQUIRED_ATTRIBUTE_ADDED: "the reader requires what the writer may leave out",
    Change.MAX_PROPERTIES_ADDED: _NEW_LIMIT,
    Change.MAX_PROPERTIES_DECREASED: _TIGHTER,
    Change.MIN_PROPERTIES_ADDED: _NEW_LIMIT,
    Change.MIN_PROPERTIES_INCREASED: _TIGHTER,
    Change.ADDITIONAL_PROPERTIES_REMOVED: "the writer may write other properties, the reader takes none",
    Change.ADDITIONAL_PROPERTIES_NARROWED: _SOME_OTHERS,
    Change.UNEVALUATED_PROPERTIES_REMOVED: "the writer may write other properties, the reader takes none",
    Change.UNEVALUATED_PROPERTIES_NARROWED: _SOME_OTHERS,
    Change.DEPENDENCY_ARRAY_ADDED: _NEW_LIMIT,
    Change.DEPENDENCY_ARRAY_EXTENDED: "the reader requires more properties beside this one",
    Change.DEPENDENCY_ARRAY_CHANGED: "the reader requires other properties beside this one",
    Change.DEPENDENCY_SCHEMA_ADDED: _NEW_LIMIT,
    Change.REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: (
        "the writer may write anything as this property or leave it out, the reader requires it of a type"
    ),
    Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL: (
        "the writer may write anything as this property, the reader takes it of a type only"
    ),
    Change.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL: (
        "the writer may write anything as this property, the reader takes it of a type only"
    ),
    Change.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL: (
        "the reader requires a property that the writer does not know"
    ),
    Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL: "the reader takes no property that it does not know",
    Change.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "what the writer may write as this property is not what the reader takes"
    ),
    Change.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "what the writer writes as this property is not what the reader takes of others"
    ),
    Change.MAX_ITEMS_ADDED: _NEW_LIMIT,
    Change.MAX_ITEMS_DECREASED: _TIGHTER,
    Change.MIN_ITEMS_ADDED: _NEW_LIMIT,
    Change.MIN_ITEMS_INCREASED: _TIGHTER,
    Change.MAX_CONTAINS_ADDED: _NEW_LIMIT,
    Change.MAX_CONTAINS_DECREASED: _TIGHTER,
    Change.MIN_CONTAINS_ADDED: _NEW_LIMIT,
    Change.MIN_CONTAINS_INCREASED: _TIGHTER,
    Change.UNIQUE_ITEMS_ADDED: "the reader takes no item twice",
    Change.ADDITIONAL_ITEMS_REMOVED: "the writer may write further items, the reader takes none",
    Change.ADDITIONAL_ITEMS_NARROWED: "the writer may write any further item, the reader takes only some",
    Change.UNEVALUATED_ITEMS_REMOVED: "the writer may write further items, the reader takes none",
    Change.UNEVALUATED_ITEMS_NARROWED: "the writer may write any further item, the reader takes only some",
    Change.ITEM_ADDED_TO_OPEN_CONTENT_MODEL: (
        "the writer may write anything as this item, the reader takes it of a type only"
    ),
    Change.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL: "the reader takes no item here",
    Change.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "what the writer may write as this item is not what the reader takes"
    ),
    Change.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL: (
        "what the writer writes as this item is not what the reader takes of further ones"
    ),
    Change.ENUM_ARRAY_NARROWED: _FEWER,
    Change.ENUM_ARRAY_CHANGED: "the values differ",
    Change.COMBINED_TYPE_CHANGED: "the schemas are combined in different ways",
    Change.COMBINED_TYPE_SUBSCHEMAS_CHANGED: "some of the combined schemas have none that fits them",
    Change.PRODUCT_TYPE_EXTENDED: "the reader has more schemas that all have to match",
    Change.SUM_TYPE_NARROWED: "the reader has fewer schemas of which one may match",
    Change.NOT_TYPE_EXTENDED: "the reader excludes more than the writer",
}
