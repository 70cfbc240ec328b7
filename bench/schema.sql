-- The scenarios of the benchmark, each a routine with an HTTP endpoint.
--
-- Every routine is deterministic, so that each response of a run can be compared with the first one, byte by byte.
-- None reads a table, because the service is measured and not the disk. All are plain SQL, STABLE, not STRICT and
-- without SET clause, so that PostgreSQL can inline them. Column names are single words, so that the peers have the same
-- keys as rowcall (camelCase) without renaming them, which rowcall does once at startup.

drop schema if exists bench cascade;
create schema bench;

create function bench.minimal()
returns table (name text, at timestamptz)
language sql stable
as $$
    select 'hello'::text, timestamptz '2024-02-29 12:30:00+00'
$$;
comment on function bench.minimal() is 'HTTP GET /bench/minimal
allow_anonymous';

create function bench.types(_rows int)
returns table (
    id int, small smallint, big bigint, price numeric(12, 2), ratio double precision, score real,
    label text, code varchar(20), fixed char(4), flag boolean,
    day date, clock time, stamp timestamp, moment timestamptz, key uuid, doc json, docb jsonb,
    ints int[], bigs bigint[], texts text[], flags boolean[], days date[], nothing text
)
language sql stable
as $$
    select
        i,
        (i % 1000)::smallint,
        i * 1000000007::bigint,
        (i * 1.25)::numeric(12, 2),
        i / 8.0::double precision,
        (i * 0.5)::real,
        'Row "' || i || '" of the set',
        ('C-' || i)::varchar(20),
        'abcd'::char(4),
        i % 2 = 0,
        date '2024-01-01' + i % 365,
        time '08:15:30',
        timestamp '2024-01-01 10:20:30' + i * interval '1 minute',
        timestamptz '2024-01-01 10:20:30+00' + i * interval '1 minute',
        '8f5b1a64-3c1d-4c0e-9d57-0a5d6f1e2b3c'::uuid,
        ('{"id": ' || i || ', "tags": ["a", "b"]}')::json,
        '{"size": {"w": 3, "h": 4}, "open": true}'::jsonb,
        array[i, i + 1, i + 2],
        array[i * 10000000000, 2],
        array['plain', 'with "quotes"', 'comma, inside', null],
        array[true, false, i % 3 = 0],
        array[date '2024-03-01', date '2024-02-29'],
        null::text
    from generate_series(1, _rows) i
$$;
comment on function bench.types(int) is 'HTTP GET /bench/types
allow_anonymous';

create function bench.params(
    _id int, _small smallint, _big bigint, _price numeric, _ratio double precision,
    _score real, _label text, _code varchar, _flag boolean, _day date,
    _clock time, _stamp timestamp, _moment timestamptz, _key uuid, _docb jsonb,
    _first text, _second text, _third int, _fourth int, _fifth boolean
)
returns table (
    id int, small smallint, big bigint, price numeric, ratio double precision,
    score real, label text, code varchar, flag boolean, day date,
    clock time, stamp timestamp, moment timestamptz, key uuid, docb jsonb,
    first text, second text, third int, fourth int, fifth boolean
)
language sql stable
as $$
    select _id, _small, _big, _price, _ratio, _score, _label, _code, _flag, _day,
           _clock, _stamp, _moment, _key, _docb, _first, _second, _third, _fourth, _fifth
$$;
comment on function bench.params(
    int, smallint, bigint, numeric, double precision, real, text, varchar, boolean, date,
    time, timestamp, timestamptz, uuid, jsonb, text, text, int, int, boolean
) is 'HTTP GET /bench/params
allow_anonymous';

create function bench.post(_rows int, _label text, _price numeric, _day date, _flag boolean, _tags text[])
returns table (id int, label text, price numeric, day date, flag boolean, tags text[], total bigint)
language sql stable
as $$
    select i, _label || ' ' || i, _price * i, _day + i, _flag, _tags, i * 100000000000
    from generate_series(1, _rows) i
$$;
comment on function bench.post(int, text, numeric, date, boolean, text[]) is 'HTTP POST /bench/post
allow_anonymous';

create type bench.person as (name text, born date);
create type bench.item as (position int, title text, price numeric(12, 2));

create function bench.nested(_rows int)
returns table (id int, owner bench.person, tags text[], items bench.item[])
language sql stable
as $$
    select
        i,
        row('Ada, "Countess" ' || i, date '1815-12-10' + i)::bench.person,
        array['first', 'second one'],
        array[
            row(1, 'A "quoted" title', 12.50)::bench.item,
            row(2, 'plain', i)::bench.item,
            row(3, null, 0.99)::bench.item
        ]
    from generate_series(1, _rows) i
$$;
comment on function bench.nested(int) is 'HTTP GET /bench/nested
allow_anonymous
nested';

-- Composites in arrays in composites.
create type bench.shelf as (title text, code text, items bench.item[]);

create function bench.shelves(_rows int)
returns table (id int, shelf bench.shelf)
language sql stable
as $$
    select
        i,
        row(
            'Shelf "' || i || '"',
            'S-' || i,
            array[
                row(1, 'A "quoted" title', 12.50)::bench.item,
                row(2, 'plain', i)::bench.item,
                row(3, null, 0.99)::bench.item,
                row(4, 'back\slash, comma', 100)::bench.item
            ]
        )::bench.shelf
    from generate_series(1, _rows) i
$$;
comment on function bench.shelves(int) is 'HTTP GET /bench/shelves
allow_anonymous
nested';

create function bench.flat(_rows int)
returns table (id int, shelf bench.shelf)
language sql stable
as $$
    select s.id, s.shelf from bench.shelves(_rows) s
$$;
comment on function bench.flat(int) is 'HTTP GET /bench/flat
allow_anonymous';

create type bench.hall as (tag text, lead bench.person, items bench.item[]);
create type bench.region as (name text, halls bench.hall[]);

create function bench.levels(_rows int)
returns table (id int, region bench.region)
language sql stable
as $$
    select
        i,
        row(
            'Region, ' || i,
            array[
                row(
                    'east',
                    row('Ada, "Countess" ' || i, date '1815-12-10' + i % 365)::bench.person,
                    array[row(1, 'A "quoted" title', i)::bench.item, row(2, null, 0.99)::bench.item]
                )::bench.hall,
                row('west', null, array[row(3, 'plain', 12.50)::bench.item])::bench.hall
            ]
        )::bench.region
    from generate_series(1, _rows) i
$$;
comment on function bench.levels(int) is 'HTTP GET /bench/levels
allow_anonymous
nested';

-- The same responses as JSON made by PostgreSQL, for the service rowcall-json.
drop schema if exists bench_json cascade;
create schema bench_json;

create function bench_json.shelves(_rows int) returns json language sql stable
as $$ select json_agg(to_json(s)) from bench.shelves(_rows) s $$;
comment on function bench_json.shelves(int) is 'HTTP GET /bench/shelves
allow_anonymous';

create function bench_json.flat(_rows int) returns json language sql stable
as $$
    select json_agg(to_json(f))
    from (select s.id, (s.shelf).title, (s.shelf).code, (s.shelf).items from bench.flat(_rows) s) f
$$;
comment on function bench_json.flat(int) is 'HTTP GET /bench/flat
allow_anonymous';

create function bench_json.levels(_rows int) returns json language sql stable
as $$ select json_agg(to_json(l)) from bench.levels(_rows) l $$;
comment on function bench_json.levels(int) is 'HTTP GET /bench/levels
allow_anonymous';

-- One row for each kilobyte of text; every line contains characters that JSON escapes.
create function bench.large(_kilobytes int)
returns table (id int, content text)
language sql stable
as $$
    select i, repeat('Sixty-three bytes of "text", with a \ and with an end of line.' || chr(10), 16)
    from generate_series(1, _kilobytes) i
$$;
comment on function bench.large(int) is 'HTTP GET /bench/large
allow_anonymous';

-- For the streaming checks: many small rows, which PostgreSQL never stores together either. In the select list,
-- generate_series returns one row at a time; in FROM, the server would first write all of them to a tuple store.
create function bench.stream(_rows int)
returns table (id int, label text, price numeric(12, 2))
language sql stable
as $$
    select s.i, 'Row number ' || s.i, (s.i * 0.01)::numeric(12, 2)
    from (select generate_series(1, _rows) as i) s
$$;
comment on function bench.stream(int) is 'HTTP GET /bench/stream
allow_anonymous';

-- For callers with a token: an endpoint with authorization, and one whose claims become settings for its routine.
create function bench.authorized()
returns table (name text, at timestamptz)
language sql stable
as $$
    select 'hello'::text, timestamptz '2024-02-29 12:30:00+00'
$$;
comment on function bench.authorized() is 'HTTP GET /bench/authorized
authorize boss';

create function bench.claims(_rows int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid, docb jsonb, ints int[], texts text[])
language sql stable
as $$
    select id, price, label, day, key, docb, ints, texts from bench.types(_rows)
$$;
comment on function bench.claims(int) is 'HTTP GET /bench/claims
authorize boss
user_context';

-- The same without the measured feature.
drop schema if exists bench_open cascade;
create schema bench_open;

create function bench_open.authorized()
returns table (name text, at timestamptz)
language sql stable
as $$
    select 'hello'::text, timestamptz '2024-02-29 12:30:00+00'
$$;
comment on function bench_open.authorized() is 'HTTP GET /bench/authorized
allow_anonymous';

create function bench_open.claims(_rows int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid, docb jsonb, ints int[], texts text[])
language sql stable
as $$
    select id, price, label, day, key, docb, ints, texts from bench.types(_rows)
$$;
comment on function bench_open.claims(int) is 'HTTP GET /bench/claims
authorize boss';

-- Cached responses: the same few columns from each place, and the cost of caching a response without a later hit.

create function bench.cached_memory(_rows int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid) language sql stable
as $$ select id, price, label, day, key from bench.types(_rows) $$;
comment on function bench.cached_memory(int) is 'HTTP GET /bench/cached_memory
allow_anonymous
cache_profile memory';

create function bench.cached_hybrid(_rows int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid) language sql stable
as $$ select id, price, label, day, key from bench.types(_rows) $$;
comment on function bench.cached_hybrid(int) is 'HTTP GET /bench/cached_hybrid
allow_anonymous
cache_profile hybrid';

create function bench.cached_redis(_rows int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid) language sql stable
as $$ select id, price, label, day, key from bench.types(_rows) $$;
comment on function bench.cached_redis(int) is 'HTTP GET /bench/cached_redis
allow_anonymous
cache_profile redis';

create function bench.cached_miss(_id int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid) language sql stable
as $$ select _id, price, label, day, key from bench.types(10) $$;
comment on function bench.cached_miss(int) is 'HTTP GET /bench/cached_miss
allow_anonymous
cache_profile memory
cache_expires 1 ms';

create function bench.uncached(_id int)
returns table (id int, price numeric(12, 2), label text, day date, key uuid) language sql stable
as $$ select _id, price, label, day, key from bench.types(10) $$;
comment on function bench.uncached(int) is 'HTTP GET /bench/uncached
allow_anonymous';
