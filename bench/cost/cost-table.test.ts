import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PRICES } from '../../shared/cost/prices.ts';
import { type BillSettings, billReport, POLLERS_MIN } from './bill.ts';
import { costTable, dollarsText, tableLines, targetLines } from './cost-table.ts';
import { NOTHING } from './measurement.ts';
import { type CostOptions, parseCostOptions } from './options.ts';
import { readMeasurement } from './recorded.ts';

const outcome = readMeasurement(JSON.parse(readFileSync(new URL('./measurement.json', import.meta.url), 'utf8')));
if (outcome.kind !== 'measurement') throw new Error(outcome.faults.join());
const recorded = outcome.measurement;

const settings: BillSettings = {
  nodes: 0,
  beatSeconds: 10,
  door: 'api',
  relayMachines: 0,
  billing: 'onDemand',
  watchers: 0,
  abandonedWatchesPerDay: 10,
  failuresPerNode: 1,
  connectionsPerNodeDay: 24,
  podsPerNode: 0,
  zones: 3,
  lambdaTime: 'estimated',
  idlePollers: POLLERS_MIN,
};
const INTERVALS = [10, 60].map((beatSeconds) => ({ name: `${beatSeconds} s`, beatSeconds }));
const SIZES = [100, 1_000];
/** A batch costs one request and its writes. */
const batches = [5, 25].map((items) => ({
  items,
  taken: {
    ...NOTHING,
    httpRequests: 1,
    answeredBytes: 250 * items,
    functions: { heartbeat: { invocations: 1, billedMs: 0, cpuMs: 1 + items / 2 } },
    tables: { health: { readUnits: 0, writeUnits: items } },
  },
}));
const measurement = { ...recorded, batches };
const rows = costTable(measurement, { sizes: SIZES, intervals: INTERVALS }, settings, PRICES);
const perNode = ({ dollarsPerNode }: { readonly dollarsPerNode: number }): number => dollarsPerNode;

describe('the cost table', () => {
  it('has a row for each way of heartbeats and interval', () => {
    expect(rows.map(({ way, interval }) => `${way.name}, ${interval.name}`)).toEqual([
      'HTTP API, 10 s',
      'HTTP API, 60 s',
      'HTTP API, relay, 10 s',
      'HTTP API, relay, 60 s',
      'function URL, 10 s',
      'function URL, 60 s',
      'function URL, relay, 10 s',
      'function URL, relay, 60 s',
    ]);
  });

  it('has no relays without measured batches', () => {
    const { batches: _, ...older } = measurement;
    const ways = costTable(older, { sizes: SIZES, intervals: INTERVALS }, settings, PRICES).map(({ way }) => way.name);
    expect(new Set(ways)).toEqual(new Set(['HTTP API', 'function URL']));
  });

  it('has the figures of the bill with the same settings', () => {
    const bill = billReport(
      measurement,
      { ...settings, nodes: 1_000, beatSeconds: 60, door: 'url', billing: 'provisioned' },
      PRICES,
    );
    expect(rows[5]?.sizes[1]?.provisioned).toEqual(bill);
  });

  it('is printed with the sizes of each capacity mode', () => {
    const lines = [...tableLines(rows, perNode)];
    expect(lines[0]).toBe(
      '| heartbeats through | interval | on demand, 100 | on demand, 1,000 | provisioned, 100 | provisioned, 1,000 |',
    );
    const { onDemand, provisioned } = rows[0]!.sizes[1]!;
    const cells = lines[2]!.split('|').map((cell) => cell.trim());
    expect(cells.slice(1, 3)).toEqual(['HTTP API', '10 s']);
    expect([cells[4], cells[6]]).toEqual([perNode(onDemand), perNode(provisioned)].map(dollarsText));
    expect(lines).toHaveLength(10);
  });

  it('is in docs/cost.md as the command in front of it prints it', () => {
    // mixed-fleet.yaml: half of the nodes every 10 s, half every 60 s.
    const mixed = 2 / (1 / 10 + 1 / 60);
    const intervals = [...INTERVALS, { name: `mix, ${mixed.toFixed(1)} s`, beatSeconds: mixed }];
    const { nodes: sizes } = parseCostOptions(['--table']) as CostOptions;
    const all = costTable(recorded, { sizes, intervals }, settings, PRICES);
    const docs = readFileSync(new URL('../../docs/cost.md', import.meta.url), 'utf8').split('\n');
    expect([...tableLines(all, perNode)].filter((line) => !docs.includes(line))).toEqual([]);
  });

  it('states each target with the most expensive size', () => {
    const lines = [...targetLines(rows)];
    expect(lines).toHaveLength(3);
    expect(lines[2]).toMatch(
      /^function URL, 60 s, on demand: \$0\.0\d+ per node at most, within the target of \$0\.1$/,
    );
    const expensive = costTable(measurement, { sizes: SIZES, intervals: INTERVALS }, settings, {
      ...PRICES,
      writeUnit: 2 * PRICES.writeUnit,
    });
    expect([...targetLines(expensive)][0]).toMatch(/over the target of \$0\.27 by \$0\.16\d\d$/);
  });

  it.each([
    [0.26991, '$0.270'],
    [44.433, '$44.43'],
    [5_100.6, '$5,101'],
  ])('prints %d dollars as %s', (dollars, text) => {
    expect(dollarsText(dollars)).toBe(text);
  });

  it('has sizes of its own, and no JSON', () => {
    expect(parseCostOptions(['--table'])).toMatchObject({ nodes: [100, 1_000, 10_000], table: true });
    expect(parseCostOptions([])).toMatchObject({ nodes: [1_000], table: false });
    expect(() => parseCostOptions(['--table', '--json'])).toThrow('--table prints no JSON: leave out --json');
  });
});
