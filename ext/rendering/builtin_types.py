"""The types that every PostgreSQL has and whose values are not JSON strings, by their fixed OIDs (`pg_type.dat`).

A scalar type that is not named here is rendered as text. Tests compare the tables with `pg_type` of a real server.
"""

from typing import Final

SCALARS: Final[dict[int, str]] = {
    16: "boolean",
    20: "number",  # int8
    21: "number",  # int2
    23: "number",  # int4
    700: "number",  # float4
    701: "number",  # float8
    1700: "number",  # numeric
    114: "json",
    3802: "json",  # jsonb
    1114: "datetime",  # timestamp
    1184: "datetime",  # timestamptz
    2249: "record",
}
"""OID of a scalar type → name of its rule, as `Codecs.define_scalar` takes it."""

ARRAYS: Final[dict[int, int]] = {
    143: 142,
    199: 114,
    271: 5069,
    629: 628,
    651: 650,
    719: 718,
    775: 774,
    791: 790,
    1000: 16,
    1001: 17,
    1002: 18,
    1003: 19,
    1005: 21,
    1006: 22,
    1007: 23,
    1008: 24,
    1009: 25,
    1010: 27,
    1011: 28,
    1012: 29,
    1013: 30,
    1014: 1042,
    1015: 1043,
    1016: 20,
    1017: 600,
    1018: 601,
    1019: 602,
    1020: 603,
    1021: 700,
    1022: 701,
    1027: 604,
    1028: 26,
    1034: 1033,
    1040: 829,
    1041: 869,
    1115: 1114,
    1182: 1082,
    1183: 1083,
    1185: 1184,
    1187: 1186,
    1231: 1700,
    1270: 1266,
    1561: 1560,
    1563: 1562,
    2201: 1790,
    2207: 2202,
    2208: 2203,
    2209: 2204,
    2210: 2205,
    2211: 2206,
    2949: 2970,
    2951: 2950,
    3221: 3220,
    3643: 3614,
    3644: 3642,
    3645: 3615,
    3735: 3734,
    3770: 3769,
    3807: 3802,
    3905: 3904,
    3907: 3906,
    3909: 3908,
    3911: 3910,
    3913: 3912,
    3927: 3926,
    4073: 4072,
    4090: 4089,
    4097: 4096,
    4192: 4191,
    5039: 5038,
    6150: 4451,
    6151: 4532,
    6152: 4533,
    6153: 4534,
    6155: 4535,
    6157: 4536,
    2287: 2249,
}
"""OID of an array type → OID of its element type. The last entry is `record[]`."""

DELIMITERS: Final[dict[int, str]] = {1020: ";"}
"""OID of an array type → separator of its elements, if that is not a comma: only `box[]`."""

BYTEA: Final = 17
"""OID of the type bytea."""

QUOTED_RAW: Final = frozenset((18, 19, 25, 114, 142, 1042, 1043, 1082, 1114, 1184, 1790, 3802, 4072))
"""OIDs of the types that raw results with a separator put in quotes (rendering-37): "char", name, text, json, xml,
char, varchar, date, timestamp, timestamptz, refcursor, jsonb, jsonpath."""

FIRST_CREATED: Final = 16384
"""Lowest OID of a type that the server has not had from its installation: extensions, enums, composites, domains."""

PLAIN_CSV: Final = frozenset((16, 20, 21, 23, 26, 700, 701, 1700))
"""OIDs of the types whose values never contain a character that CSV has to quote: boolean, numbers, oid."""
