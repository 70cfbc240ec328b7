-- Several statements, one answer: each has a key of its own.
-- HTTP GET /couriers/{id}/overview
-- @allow_anonymous
-- @param id type is int
-- @result courier
-- @single
select id, name, bicycle, districts from demo.courier where id = :id;

-- @result waiting
select id as parcel, weight, district from demo.parcel
where courier = :id and delivered is null order by id limit 5;

-- @result delivered
-- @single
select count(*) as parcels, round(sum(weight)::numeric, 1) as weight
from demo.parcel where courier = :id and delivered is not null;
