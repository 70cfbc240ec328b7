-- As many.sql, but more like a real service: 2,000 different signatures, and comments of several lines.
drop schema if exists many cascade;
create schema many;
create type many.line as (article int, pieces numeric(10,2), note text);
do $$
declare
    -- Types of the parameters and columns.
    kinds text[] := array['int', 'text', 'date', 'bigint', 'uuid', 'boolean', 'timestamptz', 'numeric', 'jsonb', 'int[]'];
    kind int;
    inputs text;
    columns text;
    nothing text;
    types text;
    name text;
begin
    for i in 1..1000 loop
        kind := i % 2000;
        name := format('many.%s_%s',
            (array['list', 'find', 'get', 'create', 'update'])[1 + i % 5], 'order_' || i);
        select string_agg(format('_field_%s_%s %s%s', kind % 250, n, kinds[1 + (kind + n * n) % 10],
                                 case when n > 1 + kind % 3 then ' default null' else '' end), ', ' order by n),
               string_agg(kinds[1 + (kind + n * n) % 10], ', ' order by n)
            into inputs, types from generate_series(1, 1 + kind % 8) n;
        select string_agg(format('column_%s_%s %s', kind % 400, n,
                                 case when n = 9 then 'many.line' else kinds[1 + (kind / 7 + n * 3) % 10] end),
                          ', ' order by n),
               string_agg(format('null::%s',
                                 case when n = 9 then 'many.line' else kinds[1 + (kind / 7 + n * 3) % 10] end),
                          ', ' order by n)
            into columns, nothing from generate_series(1, 2 + kind % 9) n;
        if i % 3 = 0 then
            execute format(
                'create function %s(%s) returns table (%s) language plpgsql %s as ''begin return query select %s; end''',
                name, inputs, columns, (array['stable', 'volatile'])[1 + i % 2], nothing);
        else
            execute format(
                'create function %s(%s) returns table (%s) language sql %s as ''select %s''',
                name, inputs, columns, (array['stable', 'volatile', ''])[1 + i % 3], nothing);
        end if;
        execute format('comment on function %s(%s) is %L', name, types, concat_ws(E'\n',
            format('Orders of the customer, as page %s of the manual says.', i % 97),
            '',
            'Closed orders are omitted unless requested.',
            format('HTTP %s /many/%s', (array['GET', 'GET', 'GET', 'POST', 'PUT'])[1 + i % 5], i),
            case when i % 2 = 0 then 'authorize ' || (array['admin', 'sales, support', 'accounting'])[1 + i % 3]
                 else 'allow_anonymous' end,
            format('tags orders, part_%s', i % 40),
            case when i % 7 = 0 then 'timeout 20s' end,
            case when i % 5 in (0, 1, 2) and i % 11 = 0 then 'Cache-Control: private, max-age=' || i % 600 end,
            case when kind % 4 = 1 then format('validate _field_%s_1 using required', kind % 250) end,
            case when i % 6 = 0 then 'user_context' end));
    end loop;
    -- The routines that bench/reload.py changes.
    for i in 1..100 loop
        execute format(
            'create function many.routine_%s(_id int, _label text default null, _day date default null)
             returns table (id int, label text, day date) language sql stable
             as ''select _id, _label, _day''', i);
        execute format(
            'comment on function many.routine_%s(int, text, date) is %L', i,
            format(E'HTTP GET /many/same-%s\nallow_anonymous', i));
    end loop;
end
$$;
