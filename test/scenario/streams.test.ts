import { describe, expect, it } from 'vitest';
import { compileFilters } from '../../aws-local/streams/filter.ts';
import { healthStreamManifest } from '../../functions/health-stream/manifest.ts';
import { objectStreamManifest } from '../../functions/object-stream/manifest.ts';
import { passesHealthFilter, passesObjectFilter } from '../../server/changes/change-filters.ts';
import { defined } from '../../shared/defined.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { controlledFleet, START_MS } from '../support/controlled-fleet.ts';

const patternsOf = (filters: readonly object[]) => filters.map((filter) => JSON.stringify(filter));

/** Every combination of the attributes that the filter of the table `health` may read. */
const HEALTH_ROWS = [undefined, 'T', 'F', 'U'].flatMap((y) =>
  [undefined, 1, 2, 3].flatMap((k) =>
    [undefined, 5_000].flatMap((m) =>
      // A planned silence that stands makes its node suspect.
      [{}, { S: -5 }, { s: 1 }, { S: -5, s: 1 }, { S: 5, s: 1 }].map((silence) => ({
        ...defined({ y, k, m }),
        ...silence,
      })),
    ),
  ),
);

const onWire = (image: Readonly<Record<string, string | number>>) =>
  Object.fromEntries(
    Object.entries(image).map(([name, value]) => [
      name,
      typeof value === 'number' ? { N: String(value) } : { S: value },
    ]),
  );

const TYPES = ['INSERT', 'MODIFY', 'REMOVE'] as const;

describe('the filters of simulated streams', () => {
  it('let through what the deployed ones do', () => {
    const health = compileFilters(patternsOf(healthStreamManifest.triggers[0].filters), 'health');
    const objects = compileFilters(patternsOf(objectStreamManifest.triggers[0].filters), 'objects');
    for (const type of TYPES) {
      for (const row of HEALTH_ROWS) {
        const image = type === 'REMOVE' ? undefined : { pk: 's01', sk: 'a', ...row };
        const wire = image === undefined ? {} : { NewImage: onWire(image) };
        const change = defined({ newImage: image });
        expect([type, row, passesHealthFilter(change)]).toEqual([
          type,
          row,
          health({ eventName: type, dynamodb: wire }),
        ]);
      }
    }
    const partitions = ['o#nodes#00', 'o#pods#03', 'o#events#00', 'l#nodes#00', 'h#pods#01', 'n#a-0', 'r#nodes#a#u'];
    for (const type of TYPES) {
      for (const pk of partitions) {
        const change = { type, key: { table: 'objects', pk, sk: 'a' } } as const;
        expect([type, pk, passesObjectFilter(change)]).toEqual([
          type,
          pk,
          objects({ eventName: type, dynamodb: { Keys: { pk: { S: pk } } } }),
        ]);
      }
    }
  });
});

describe('the filter of the table health', () => {
  it('leaves out only changes that health-stream does nothing for', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    const { newImage: stored } = fleet.tables.changes('health').at(-1)!;
    const createdAtMs = Number(stored!['b']);
    let passed = 0;
    for (const row of HEALTH_ROWS) {
      // The first sign of life after a silence, and after a mark.
      const marked = row.m === undefined ? {} : { m: createdAtMs + 50_000 };
      const before = { ...stored!, ...row, ...marked, r: createdAtMs + 1_000 };
      const after = { ...before, r: createdAtMs + 100_000 };
      for (const oldImage of [undefined, before]) {
        const key = { table: 'health', pk: String(stored!['pk']), sk: 'n1' } as const;
        const change = { type: oldImage === undefined ? 'INSERT' : 'MODIFY', key, newImage: after } as const;
        fleet.consumed();
        await fleet.controllers.onHealthRecords([{ ...change, ...defined({ oldImage }) }]);
        const hasWork = fleet.consumed().requests.length > 0;
        if (passesHealthFilter(change)) passed += 1;
        else expect([row, hasWork]).toEqual([row, false]);
      }
    }
    expect(passed).toBeGreaterThan(0);
  });

  it('passes nothing of a node that registers, becomes Ready and sends heartbeats', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.beat('n1');
    await fleet.post('n1');
    await fleet.streams();
    for (const seconds of [10, 20]) {
      fleet.at(seconds);
      await fleet.beat('n1');
    }
    expect(fleet.tables.changes('health').length).toBeGreaterThan(3);
    expect(fleet.tables.changes('health').filter(passesHealthFilter)).toEqual([]);
  });

  it('passes no heartbeat of a healthy node after its planned silence ended', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.post('n1');
    const annotate = (annotations: Record<string, string>): Promise<unknown> =>
      fleet.changeNode('n1', (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
    await annotate({ 'nodekeeper.dev/planned-silence-until': rfc3339(START_MS + 100_000) });
    await fleet.streams();
    fleet.at(10);
    await fleet.beat('n1');
    expect(fleet.tables.changes('health').slice(-1).filter(passesHealthFilter)).toHaveLength(1);
    await annotate({});
    await fleet.streams();
    fleet.at(20);
    await fleet.beat('n1');
    expect(
      fleet.tables
        .changes('health')
        .slice(-1)
        .map(({ newImage }) => newImage?.['S']),
    ).toEqual([expect.any(Number)]);
    expect(fleet.tables.changes('health').slice(-1).filter(passesHealthFilter)).toEqual([]);
  });
});
