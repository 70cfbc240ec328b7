-- Second factors: secrets of authenticator apps (encrypted by the service), recovery codes and devices (as hashes).

create table rowcall.second_factor (
    subject text primary key,
    secret text not null,
    created timestamptz not null default clock_timestamp(),
    -- The time of the first correct code; until then, the user is not asked for one.
    confirmed timestamptz,
    -- Codes of this step and of earlier ones are used up.
    last_step bigint not null default 0,
    failures integer not null default 0,
    blocked_until timestamptz
);
comment on table rowcall.second_factor is 'Authenticator apps of users.';

create table rowcall.recovery_code (
    subject text not null references rowcall.second_factor on delete cascade,
    hash bytea not null,
    used timestamptz,
    primary key (subject, hash)
);
comment on table rowcall.recovery_code is 'Recovery codes of users: SHA-256 of each.';

create table rowcall.remembered_device (
    id uuid primary key default gen_random_uuid(),
    subject text not null,
    hash bytea not null,
    description text,
    created timestamptz not null default clock_timestamp(),
    expires timestamptz not null,
    unique (subject, hash)
);
comment on table rowcall.remembered_device is 'Browsers whose users need not prove a second factor again.';

-- Returns whether a user has an authenticator app, how many recovery codes are left, and whether the device with this
-- hash is remembered.
create function rowcall.second_factor_of(_subject text, _device bytea default null)
returns table (confirmed boolean, recovery_codes bigint, remembered boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select
        exists (select from rowcall.second_factor f where f.subject = _subject and f.confirmed is not null),
        (select count(*) from rowcall.recovery_code c where c.subject = _subject and c.used is null),
        exists (select from rowcall.remembered_device d
                where d.subject = _subject and d.hash = _device and d.expires > clock_timestamp())
$$;

-- Stores the secret of a new authenticator app until its first code. Returns false if the user has a confirmed one.
create function rowcall.begin_second_factor(_subject text, _secret text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into rowcall.second_factor as f (subject, secret) values (_subject, _secret)
    on conflict (subject) do update set secret = excluded.secret, created = clock_timestamp()
        where f.confirmed is null;
    return found;
end $$;

-- Counts an attempt as failed in advance, so that parallel ones cannot exceed the number, and returns what is needed to
-- verify it. wait: seconds until the next attempt is possible; the secret is null then. No row: there is no
-- authenticator app.
create function rowcall.try_second_factor(_subject text, _attempts integer)
returns table (secret text, confirmed boolean, wait double precision)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    factor rowcall.second_factor;
    moment timestamptz;
begin
    select f.* into factor from rowcall.second_factor f where f.subject = _subject for update;
    if not found then
        return;
    end if;
    moment := clock_timestamp();
    if factor.blocked_until > moment then
        return query select null::text, factor.confirmed is not null,
            extract(epoch from factor.blocked_until - moment)::double precision;
        return;
    end if;
    update rowcall.second_factor f
    set failures = factor.failures + 1,
        blocked_until = case when factor.failures + 1 >= _attempts
            then moment + make_interval(secs => least(3600, 2 ^ least(factor.failures + 1 - _attempts, 12))) end
    where f.subject = _subject;
    return query select factor.secret, factor.confirmed is not null, 0::double precision;
end $$;

-- Uses the code of a step up, and forgives the failures. Returns false if the code of this step or of a later one has
-- been used.
create function rowcall.pass_second_factor(_subject text, _step bigint) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update rowcall.second_factor
    set last_step = _step, failures = 0, blocked_until = null, confirmed = coalesce(confirmed, clock_timestamp())
    where subject = _subject and last_step < _step;
    return found;
end $$;

-- Replaces the recovery codes of a user.
create function rowcall.set_recovery_codes(_subject text, _hashes bytea[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    delete from rowcall.recovery_code where subject = _subject;
    insert into rowcall.recovery_code (subject, hash) select _subject, unnest(_hashes)
$$;

-- Uses a recovery code up. Returns false if it is not valid or has been used.
create function rowcall.use_recovery_code(_subject text, _hash bytea) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update rowcall.recovery_code set used = clock_timestamp()
    where subject = _subject and hash = _hash and used is null;
    return found;
end $$;

-- Remembers a device. The oldest ones of a user beyond 20 are removed.
create function rowcall.remember_device(_subject text, _hash bytea, _seconds double precision, _description text)
returns void language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    delete from rowcall.remembered_device
    where subject = _subject and (expires < clock_timestamp() or id in (
        select id from rowcall.remembered_device where subject = _subject order by created desc offset 19));
    insert into rowcall.remembered_device (subject, hash, expires, description)
    values (_subject, _hash, clock_timestamp() + make_interval(secs => _seconds), left(_description, 200))
$$;

create function rowcall.list_devices(_subject text)
returns table (id uuid, description text, created timestamptz, expires timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select id, description, created, expires from rowcall.remembered_device
    where subject = _subject and expires > clock_timestamp() order by created desc
$$;

-- Ends the remembering of one device, or of all. Returns how many.
create function rowcall.revoke_devices(_subject text, _id uuid default null) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with removed as (
        delete from rowcall.remembered_device where subject = _subject and id = coalesce(_id, id) returning 1
    )
    select count(*) from removed
$$;

-- Removes authenticator app, recovery codes and remembered devices of a user. Returns whether there was an app.
create function rowcall.remove_second_factor(_subject text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform rowcall.revoke_devices(_subject);
    delete from rowcall.second_factor where subject = _subject;
    return found;
end $$;

-- They decide about sign-ins: other roles need grants.
revoke execute on function
    rowcall.second_factor_of(text, bytea),
    rowcall.begin_second_factor(text, text),
    rowcall.try_second_factor(text, integer),
    rowcall.pass_second_factor(text, bigint),
    rowcall.set_recovery_codes(text, bytea[]),
    rowcall.use_recovery_code(text, bytea),
    rowcall.remember_device(text, bytea, double precision, text),
    rowcall.list_devices(text),
    rowcall.revoke_devices(text, uuid),
    rowcall.remove_second_factor(text)
from public;
