-- Accounts, their sessions, and what belongs to their users.

create table account (
    id bigint generated always as identity primary key,
    email text not null check (email like '%_@_%'),
    name text not null check (name <> ''),
    -- Null: the account has no password; its user signs in by passkey, by a link or with a provider.
    password_hash text,
    verified_at timestamptz,
    roles text[] not null default '{}',
    passkey_handle bytea not null unique default uuid_send(gen_random_uuid()),
    created_at timestamptz not null default now()
);
create unique index account_email on account (lower(email));

-- A session begins with the first request that brings its id: a login that failed has left a row, too.
create table session (
    id uuid primary key default gen_random_uuid(),
    account_id bigint not null references account on delete cascade,
    issued_at timestamptz not null default now(),
    seen_at timestamptz,
    ended_at timestamptz
);
create index session_account on session (account_id);

create table passkey (
    credential_id bytea primary key,
    account_id bigint not null references account on delete cascade,
    public_key bytea not null,
    algorithm int not null,
    sign_count bigint not null default 0,
    transports text[] not null default '{}',
    created_at timestamptz not null default now(),
    used_at timestamptz
);
create index passkey_account on passkey (account_id);

create table passkey_challenge (
    id uuid primary key default gen_random_uuid(),
    challenge bytea not null default uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    operation text not null,
    expires_at timestamptz not null default now() + interval '5 minutes'
);

-- Identities at providers, by the id that the provider never gives to another person.
create table external_identity (
    provider text not null,
    subject text not null,
    account_id bigint not null references account on delete cascade,
    primary key (provider, subject)
);

-- The data of the application: notes, which only their owners see.
create table note (
    id bigint generated always as identity primary key,
    account_id bigint not null references account on delete cascade
        default current_setting('request.user_id')::bigint,
    text text not null check (text <> ''),
    created_at timestamptz not null default now()
);

-- Endpoints on notes run with this role, so that row level security applies whatever their SQL says.
do $$
begin
    if to_regrole('accounts_user') is null then
        create role accounts_user nologin;
    end if;
exception when duplicate_object or unique_violation then
    null; -- another database of this server has just created it
end $$;
do $$
begin
    if not pg_has_role('accounts_user', 'member') then
        grant accounts_user to current_user;
    end if;
end $$;
grant select, insert, delete on note to accounts_user;
alter table note enable row level security;
create policy own_notes on note to accounts_user
    using (account_id = current_setting('request.user_id')::bigint)
    with check (account_id = current_setting('request.user_id')::bigint);
