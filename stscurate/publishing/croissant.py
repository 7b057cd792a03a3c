"""The set described in Croissant 1.0 (mlcommons.org/croissant): JSON-LD that data-set searches and loaders read.

Files are named relative to croissant.json, so that it holds for a folder and for a repository alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from stscurate.publishing.layouts import Layout

CROISSANT = "croissant.json"
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(matter: Mapping[str, Any], published: Sequence[Layout]) -> dict[str, Any]:
    """The JSON-LD of a set, of its card's YAML and its configs: a record set for each split of each config.

    There is no date in it: the same run gives the same bytes.
    """
    licences = matter["license"] if isinstance(matter["license"], list) else [matter["license"]]
    splits = [(layout, split) for layout in published for split in layout.counts]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": matter["pretty_name"],
        "description": "Pairs of texts with how similar they are in meaning, for sentence embedding models.",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": licences,
        "inLanguage": list(matter["language"]),
        "keywords": list(matter["tags"]),
        "distribution": [_files(layout, split) for layout, split in splits],
        "recordSet": [_records(layout, split) for layout, split in splits],
    }


def _files(layout: Layout, split: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{layout.name}-{split}-files",
        "encodingFormat": "application/x-parquet",
        "includes": f"data/{layout.name}/{split}-*.parquet",
    }


def _records(layout: Layout, split: str) -> dict[str, Any]:
    name = f"{layout.name}-{split}"
    return {"@type": "cr:RecordSet", "@id": name, "field": [_field(name, field) for field in layout.schema]}


def _field(records: str, field: pa.Field) -> dict[str, Any]:
    several = pa.types.is_list(field.type)
    kind = field.type.value_type if several else field.type
    of = "sc:Float" if pa.types.is_floating(kind) else "sc:Integer" if pa.types.is_integer(kind) else "sc:Text"
    return {
        "@type": "cr:Field",
        "@id": f"{records}/{field.name}",
        "dataType": of,
        **({"repeated": True} if several else {}),
        "source": {"fileSet": {"@id": f"{records}-files"}, "extract": {"column": field.name}},
    }
