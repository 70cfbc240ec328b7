-- A thousand small routines with endpoints, for the time from the start to the first response.
drop schema if exists many cascade;
create schema many;
do $$
begin
    for i in 1..1000 loop
        execute format(
            'create function many.routine_%s(_id int, _label text default null, _day date default null)
             returns table (id int, label text, day date) language sql stable
             as ''select _id, _label, _day''', i);
        execute format(
            'comment on function many.routine_%s(int, text, date) is %L', i,
            format(E'HTTP GET /many/%s\nallow_anonymous', i));
    end loop;
end
$$;
