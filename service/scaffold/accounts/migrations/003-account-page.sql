-- What users see and do with their own account.

create function me(_user_id text default null)
returns table (id bigint, email text, name text, roles text[], has_password boolean, passkeys bigint) language sql stable
as $$
    select a.id, a.email, a.name, a.roles, a.password_hash is not null,
           (select count(*) from passkey where account_id = a.id)
    from account a where a.id = _user_id::bigint
$$;
comment on function me(text) is 'HTTP GET /api/me
authorize
user_parameters
single';

create function my_sessions(_user_id text default null, _session_id text default null)
returns table (id uuid, since timestamptz, seen timestamptz, current boolean) language sql stable as $$
    select id, issued_at, seen_at, id = _session_id::uuid from session
    where account_id = _user_id::bigint and ended_at is null and seen_at is not null order by seen_at desc
$$;
comment on function my_sessions(text, text) is 'HTTP GET /api/sessions
authorize
user_parameters';

create function end_sessions(_id uuid default null, _user_id text default null) returns bigint language sql as $$
    with ended as (
        update session set ended_at = now()
        where account_id = _user_id::bigint and ended_at is null and id = coalesce(_id, id)
        returning seen_at
    )
    select count(*) from ended where seen_at is not null
$$;
comment on function end_sessions(uuid, text) is 'HTTP POST /api/sessions/end
Without an id, all sessions end.
authorize
user_parameters';

create function change_password(_password text, _user_id text default null) returns void language sql as $$
    update account set password_hash = _password where id = _user_id::bigint
$$;
comment on function change_password(text, text) is 'HTTP POST /api/password
authorize within 10 minutes
user_parameters
parameter_hash _password';

create function export_account(_user_id text default null) returns json language sql stable as $$
    select json_build_object(
        'account', json_build_object('email', a.email, 'name', a.name, 'roles', a.roles, 'createdAt', a.created_at,
            'verifiedAt', a.verified_at),
        'notes', (select coalesce(json_agg(json_build_object('text', n.text, 'createdAt', n.created_at)
            order by n.id), '[]') from note n where n.account_id = a.id),
        'sessions', (select coalesce(json_agg(json_build_object('since', s.issued_at, 'seen', s.seen_at)
            order by s.issued_at), '[]') from session s where s.account_id = a.id and s.seen_at is not null),
        'passkeys', (select count(*) from passkey p where p.account_id = a.id),
        'identities', (select coalesce(json_agg(i.provider order by i.provider), '[]') from external_identity i
            where i.account_id = a.id))
    from account a where a.id = _user_id::bigint
$$;
comment on function export_account(text) is 'HTTP GET /api/account/export
authorize
user_parameters
Content-Disposition: attachment; filename="account.json"';

create function delete_account(_user_id text default null) returns void language plpgsql as $$
begin
    delete from account where id = _user_id::bigint;
    perform rowcall.remove_second_factor(_user_id), rowcall.revoke_tokens(_user_id);
end $$;
comment on function delete_account(text) is 'HTTP POST /api/account/delete
authorize within 10 minutes
refuse_impersonation
user_parameters';

create function notes() returns table (id bigint, text text, created_at timestamptz) language sql stable as $$
    select id, text, created_at from note order by id
$$;
comment on function notes() is 'HTTP GET /api/notes
authorize
user_context
role_from_claim';

create function add_note(_text text) returns bigint language sql as $$
    insert into note (text) values (_text) returning id
$$;
comment on function add_note(text) is 'HTTP POST /api/notes
authorize
user_context
role_from_claim';

create function remove_note(_id bigint) returns boolean language sql as $$
    delete from note where id = _id returning true
$$;
comment on function remove_note(bigint) is 'HTTP DELETE /api/notes
authorize
user_context
role_from_claim';

-- For administrators, who have to prove a second factor: update account set roles = '{admin}' where email = …
create function accounts() returns table (id bigint, email text, name text, roles text[], verified boolean)
language sql stable as $$
    select id, email, name, roles, verified_at is not null from account order by id
$$;
comment on function accounts() is 'HTTP GET /api/accounts
authorize admin
second_factor';
