-- A file of SQL is an endpoint too: nothing in the database knows of it. Change it while `rowcall --demo --watch` runs.
-- HTTP GET /slowest-districts
-- @allow_anonymous
-- @param top type is int default 3
select d.name, count(*) as parcels, avg(p.delivered - p.ordered)::interval(0)::text as needed
from demo.parcel p join demo.district d on d.code = p.district
where p.delivered is not null
group by d.name
order by avg(p.delivered - p.ordered) desc, d.name
limit greatest(:top, 0);
