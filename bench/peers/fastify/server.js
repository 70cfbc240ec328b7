// The endpoints of the benchmark in Fastify with pg: a pool, named (prepared) statements, schemas of requests, and the default
// serialisation of responses. pg does not decode composite types: scenarios with composites use JSON from PostgreSQL, as usual with pg.
import Fastify from 'fastify'
import pg from 'pg'

const size = Number(process.env.BENCH_POOL)
const pool = new pg.Pool({
  host: process.env.PGHOST, port: Number(process.env.PGPORT), database: process.env.PGDATABASE, user: process.env.PGUSER,
  min: size, max: size, idleTimeoutMillis: 0,
})

const integer = { type: 'integer' }
const number = { type: 'number' }
const string = { type: 'string' }
const boolean = { type: 'boolean' }

const parameters = {
  id: integer, small: integer, big: integer, price: number, ratio: number, score: number, label: string, code: string,
  flag: boolean, day: string, clock: string, stamp: string, moment: string, key: string, docb: string,
  first: string, second: string, third: integer, fourth: integer, fifth: boolean,
}
const order = { rows: integer, label: string, price: number, day: string, flag: boolean, tags: { type: 'array', items: string } }

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) })
const placeholders = (properties) => Object.keys(properties).map((_, index) => `$${index + 1}`).join(', ')

const routes = [
  ['minimal', 'select * from bench.minimal()', {}],
  ['types', 'select * from bench.types($1)', { rows: integer }],
  ['nested', 'select id, to_json(owner) as owner, tags, to_json(items) as items from bench.nested($1)', { rows: integer }],
  ['shelves', 'select id, to_json(shelf) as shelf from bench.shelves($1)', { rows: integer }],
  ['flat', 'select id, (shelf).title, (shelf).code, to_json((shelf).items) as items from bench.flat($1)', { rows: integer }],
  ['levels', 'select id, to_json(region) as region from bench.levels($1)', { rows: integer }],
  ['large', 'select * from bench.large($1)', { kilobytes: integer }],
  ['params', `select * from bench.params(${placeholders(parameters)})`, parameters],
]

const app = Fastify()

for (const [name, text, properties] of routes) {
  const names = Object.keys(properties)
  app.get(`/bench/${name}`, { schema: { querystring: object(properties) } }, async (request) => {
    const result = await pool.query({ name, text, values: names.map((key) => request.query[key]) })
    return result.rows
  })
}

const key = { id: integer }
const keyed = [
  ['/bench/one', 'select * from bench.one($1)', key],
  ['/bench/one_stable', 'select * from bench.one_stable($1)', key],
  ['/bench/statement', 'select id, name, balance, to_json(lines) as lines from bench.statement($1)', key],
  ['/bench/search', 'select * from bench.search($1, $2)', { first: integer, least: integer }],
  ['/api/bench/account', 'select * from bench.account where id = $1', key],
  ['/bench/file', 'select id, name, balance, opened from bench.account where id = $1', key],
]
for (const [path, text, properties] of keyed) {
  const names = Object.keys(properties)
  app.get(path, { schema: { querystring: object(properties) } }, async (request) => {
    const result = await pool.query({ name: path, text, values: names.map((name) => request.query[name]) })
    return result.rows
  })
}

const payment = { source: integer, target: integer, amount: integer }
app.post('/bench/pay', { schema: { body: object(payment) } }, async ({ body }) => {
  const values = [body.source, body.target, body.amount]
  return (await pool.query({ name: 'pay', text: 'select * from bench.pay($1, $2, $3)', values })).rows
})

const line = { account: integer, amount: integer, note: string }
app.put('/api/bench/line/returning', { schema: { body: object(line) } }, async ({ body }) => {
  const text = 'insert into bench.line (account, amount, note) values ($1, $2, $3) returning *'
  return (await pool.query({ name: 'insert', text, values: [body.account, body.amount, body.note] })).rows
})

app.post('/bench/post', { schema: { body: object(order) } }, async (request) => {
  const values = Object.keys(order).map((key) => request.body[key])
  const result = await pool.query({ name: 'post', text: `select * from bench.post(${placeholders(order)})`, values })
  return result.rows
})

// URLs of PostgREST, each with its own SQL.
const purchasesOfCustomer = `
  select c.id, c.name, coalesce((
      select json_agg(p order by p.id) from (
          select p.id, p.placed, coalesce((
              select json_agg(i order by i.id) from (
                  select i.id, i.product, i.price from bench_rest.item i where i.purchase_id = p.id) i), '[]') as item
          from bench_rest.purchase p where p.customer_id = c.id) p), '[]') as purchase
  from bench_rest.customer c where c.id = $1`
const page = `select id, customer_id, placed, note from bench_rest.purchase where customer_id >= $1
  order by customer_id, id limit $2`
const filtered = [
  ['/rest/mark', 'select * from bench_rest.mark where id = $1', { id: string }],
  ['/rest/purchase', page, { customer_id: string, limit: integer }],
  ['/rest/customer', purchasesOfCustomer, { id: string }],
]
const operand = (value) => typeof value === 'string' ? Number(value.slice(value.indexOf('.') + 1)) : value
for (const [path, text, properties] of filtered) {
  const names = Object.keys(properties)
  app.get(path, { schema: { querystring: object(properties) } }, async (request) => {
    const values = names.map((name) => operand(request.query[name]))
    return (await pool.query({ name: path, text, values })).rows
  })
}

app.post('/rest/rpc/balance_of', { schema: { body: object(key) } }, async ({ body }) => {
  const text = 'select * from bench_rest.balance_of($1)'
  return (await pool.query({ name: 'balance_of', text, values: [body.id] })).rows
})

const mark = { account: integer, amount: integer, note: string }
app.post('/rest/mark', { schema: { body: { type: 'array', items: object(mark) } } }, async ({ body }, reply) => {
  const text = `insert into bench_rest.mark (account, amount, note)
    select * from unnest($1::int[], $2::bigint[], $3::text[])`
  const values = ['account', 'amount', 'note'].map((name) => body.map((row) => row[name]))
  await pool.query({ name: 'insert-marks', text, values })
  return reply.code(201).send()
})

await app.listen({ host: '127.0.0.1', port: Number(process.env.BENCH_PORT) })
