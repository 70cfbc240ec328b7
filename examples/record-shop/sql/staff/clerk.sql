-- Who is signed in.
-- HTTP GET /clerk
-- authorize
-- user_parameters
-- @param _user_id default null
-- single
select name from shop.clerk where clerk_id = :_user_id::int;
