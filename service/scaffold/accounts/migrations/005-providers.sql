-- Sign-in with a provider: a known identity, else a new account, or the account of the user who is signed in.

create function external_login(_provider text, _email text, _name text, _info json, _analytics json, _claims json)
returns table (user_id bigint, user_name text, user_roles text[], database_role text, session_id uuid)
language plpgsql as $$
declare
    _subject text := coalesce(_info->>'sub', _info->>'id');
    _account account;
begin
    select a.* into _account from external_identity i join account a on a.id = i.account_id
    where i.provider = _provider and i.subject = _subject;
    if _account.id is null then
        if _claims is not null then
            select a.* into _account from account a where a.id = (_claims->>'user_id')::bigint;
        else
            -- An address that has an account already is not linked by itself: its user signs in and links it.
            insert into account (email, name, verified_at) values (_email, coalesce(_name, _email), now())
            on conflict (lower(email)) do nothing
            returning * into _account;
        end if;
        if _account.id is null then
            return;
        end if;
        insert into external_identity values (_provider, _subject, _account.id);
    end if;
    return query select s.user_id, s.user_name, s.user_roles, s.database_role, s.session_id from session_of(_account) s;
end $$;
