-- Objects for the scenarios that read and write tables by random keys: 100,000 accounts with five lines each. Functions are
-- declared STABLE only if the scenario needs it.

create table bench.account (
    id int primary key,
    name text not null,
    balance bigint not null,
    opened timestamptz not null
) with (fillfactor = 70);
insert into bench.account
select i, 'account ' || i, 1000000, timestamptz '2024-01-01' + i * interval '1 minute' from generate_series(100000, 199999) i;

create table bench.line (
    id bigint generated always as identity primary key,
    account int not null references bench.account,
    amount bigint not null,
    note text
);
insert into bench.line (account, amount, note)
select 100000 + i % 100000, i, 'line ' || i from generate_series(1, 500000) i;
create index on bench.line (account, id desc);

comment on table bench.account is 'HTTP
allow_anonymous';
comment on table bench.line is 'HTTP
allow_anonymous';

create function bench.one(_id int) returns setof bench.account language sql
as 'select * from bench.account where id = _id';
comment on function bench.one(int) is 'HTTP GET /bench/one
allow_anonymous';

create function bench.one_stable(_id int) returns setof bench.account language sql stable
as 'select * from bench.account where id = _id';
comment on function bench.one_stable(int) is 'HTTP GET /bench/one_stable
allow_anonymous';

create type bench.entry as (id bigint, amount bigint, note text);
create function bench.statement(_id int)
returns table (id int, name text, balance bigint, lines bench.entry[]) language sql stable
as $$
    select a.id, a.name, a.balance,
           array(select row(l.id, l.amount, l.note)::bench.entry from bench.line l
                 where l.account = a.id order by l.id desc limit 5)
    from bench.account a where a.id = _id
$$;
comment on function bench.statement(int) is 'HTTP GET /bench/statement
allow_anonymous';

create function bench.pay(_source int, _target int, _amount int)
returns table (source int, "sourceBalance" bigint, "targetBalance" bigint) language plpgsql
as $$
begin
    update bench.account set balance = balance - _amount where id = _source;
    update bench.account set balance = balance + _amount where id = _target;
    insert into bench.line (account, amount, note) values (_source, -_amount, 'paid');
    insert into bench.line (account, amount, note) values (_target, _amount, 'received');
    return query select _source, (select a.balance from bench.account a where a.id = _source),
                        (select a.balance from bench.account a where a.id = _target);
end
$$;
comment on function bench.pay(int, int, int) is 'HTTP POST /bench/pay
allow_anonymous';

create function bench.search(_first int, _least bigint default null, _name text default null)
returns setof bench.account language plpgsql
as $$
begin
    return query select a.* from bench.account a
        where a.id >= _first and (_least is null or a.balance >= _least) and (_name is null or a.name = _name)
        order by a.id limit 5;
end
$$;
comment on function bench.search(int, bigint, text) is 'HTTP GET /bench/search
allow_anonymous';

vacuum analyze bench.account;
vacuum analyze bench.line;
