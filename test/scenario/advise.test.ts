/** An hour of a fleet, and what `nodekeeper advise` says about it: counted by the ticks, served by the API. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { adviseCommand } from '../../cli/advise.ts';
import { CommandError } from '../../cli/command.ts';
import { type ApiInMemory, apiInMemory, TABLE } from '../support/api-in-memory.ts';
import { settledFleet } from '../support/controlled-fleet.ts';

const PATH = '/apis/nodekeeper.dev/v1alpha1/silencehistograms';
/** The heartbeats of a-2 are lost from then on, for 28 s. */
const LOST_AT = 600;

let api: ApiInMemory;
let writes: number;
beforeAll(async () => {
  const { fleet } = await settledFleet({ a: 3 });
  await fleet.run(0, 3_595, async (seconds) => {
    if (seconds % 10 === 0) await fleet.beat('a-0', 'a-1');
    const isLost = seconds > LOST_AT && seconds < LOST_AT + 30;
    if (seconds % 10 === 0 && !isLost) await fleet.beat('a-2');
  });
  fleet.consumed();
  await fleet.run(3_600, 3_600, () => fleet.beat('a-0', 'a-1', 'a-2'));
  writes = fleet.consumed().requests.filter(({ table, writeUnits }) => table === 'control' && writeUnits > 0).length;
  api = apiInMemory({ items: fleet.tables });
  api.advance(fleet.nowMs() - api.nowMs());
}, 60_000);

async function advise(...args: string[]): Promise<string[]> {
  const lines: string[] = [];
  const io = { environment: {}, nowMs: api.nowMs(), print: (line: string) => lines.push(line) };
  const access = ['--server', 'https://cluster.example', '--token', 'token'];
  const done = adviseCommand([...args, ...access], io, async (_access, { method, path }) => {
    const answer = await api.send(method, path);
    if (answer.code >= 300) throw new CommandError(answer.body.message, '');
    return answer.body;
  });
  await done.catch((error: Error) => lines.push(`error: ${error.message}`));
  return lines;
}

describe('an hour of silences', () => {
  it('is one item more, written by the first tick of the next hour', () => {
    // The claim of the tick, and the hour of the only zone.
    expect(writes).toBe(2);
  });

  it('is served with its zone, its live nodes and the silence of the machine that returned', async () => {
    const { body } = await api.send('GET', PATH);
    expect(body.items).toHaveLength(1);
    expect(body.items[0].spec).toMatchObject({
      hour: '2026-01-01T00:00:00Z',
      zone: 'a',
      profile: 'default',
      nodes: 3,
      beatIntervalSeconds: 10,
      graceSeconds: 40,
      periodSeconds: 5,
      buckets: [{ upToMilliseconds: 30_000, silences: 1 }],
    });
    expect(body.items[0].spec.observedSeconds).toBeGreaterThan(3_500);
    const { rows } = (await api.send('GET', PATH, { accept: TABLE })).body;
    expect(rows[0].cells.slice(1)).toEqual(['2026-01-01T00:00:00Z', 'a', 'default', '3', '100%', '1', '30s']);
    const { name } = body.items[0].metadata;
    expect((await api.send('GET', `${PATH}/${name}`)).body.spec).toEqual(body.items[0].spec);
    expect((await api.send('GET', `${PATH}/none`)).code).toBe(404);
  });

  it('is written by no client, and not watched', async () => {
    const { body } = await api.send('GET', PATH);
    expect((await api.send('DELETE', `${PATH}/${body.items[0].metadata.name}`)).code).toBe(405);
    expect((await api.send('POST', PATH, { body: {} })).code).toBe(405);
    expect((await api.send('GET', `${PATH}?watch=1`)).code).toBe(405);
  });
});

describe('advise', () => {
  it('prints what each grace period would have done, and that an hour is too little', async () => {
    const lines = await advise();
    expect(lines[0]).toBe('profile default: 3 live machines, 0.12 node-days in 0.042 days');
    const row = (grace: number) => lines.find((line) => line.trimStart().startsWith(`${grace}s `));
    expect(row(25)).toMatch(/^ +25s +1 +\d+ +27\.5s {2}30s$/);
    expect(row(30)).toMatch(/^ +30s +0 /);
    expect(row(40)).toMatch(/ {2}in force$/);
    expect(row(15)).toMatch(/ {2}too short for the interval$/);
    expect(lines.at(-2)).toMatch(/^Too little data: 0\.12 node-days show at best a bound of /);
  });

  it('prints the same figures as JSON', async () => {
    const { limitPer1000NodeDays, profiles } = JSON.parse((await advise('--json', '--at-most', '5')).join('\n'));
    expect(limitPer1000NodeDays).toBe(5);
    expect(profiles[0]).toMatchObject({ profile: 'default', graceSeconds: 40, returned: 0, nodes: 3 });
  });

  it('selects zone and profile, and says when nothing is counted for them', async () => {
    expect((await advise('--zone', 'a', '--profile', 'default'))[0]).toMatch(/^profile default/);
    expect(await advise('--zone', 'b')).toEqual(['error: no hour has been counted yet in zone "b"']);
    expect(await advise('--profile', 'slow')).toEqual(['error: no hour has been counted yet for profile "slow"']);
  });

  it('names the option that has a wrong value', async () => {
    expect(await advise('--at-most', 'few')).toEqual(['error: --at-most must be a number over 0, up to 1000, not few']);
    expect(await advise('zone')).toEqual(['error: advise has no argument zone']);
  });

  it('draws a picture', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'advice-')), 'advice.svg');
    await advise('--svg', file);
    const svg = readFileSync(file, 'utf8');
    expect(svg).toMatch(/^<svg /);
    expect(svg).toContain('default (large point: in force)');
    expect(svg).not.toContain('NaN');
    expect(await advise('--svg', join(file, 'in-a-file'))).toEqual([
      expect.stringContaining('in-a-file cannot be written: ENOTDIR'),
    ]);
  });
});
