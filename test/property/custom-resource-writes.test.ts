/** L8 and L9 for custom resources: concurrent writers, and clients that list, watch and resume. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type ApiInMemory, apiInMemory, eventsOf } from '../support/api-in-memory.ts';
import { conflictingStore } from '../support/conflicting-store.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from '../support/custom-definition.ts';

const WIDGETS = widgetsIn('default');

/** Processes over one store. Transactions that overlap conflict. */
async function processes(count: number): Promise<readonly ApiInMemory[]> {
  const items = conflictingStore(memoryItemStore(), {
    transactionMs: 1,
    pause: () => new Promise<void>((resolve) => setImmediate(resolve)),
    random: () => 0.5,
  });
  const all = Array.from({ length: count }, (_, index) => apiInMemory({ items, seed: index + 1 }));
  expect((await all[0]!.send('POST', DEFINITIONS, { body: widgetDefinition() })).code).toBe(201);
  return all;
}

it('L8 of concurrent writes on one version one wins, and no acknowledged write is lost', async () => {
  const all = await processes(4);
  expect((await all[0]!.send('POST', WIDGETS, { body: widget('w', { size: 1, replicas: 0 }) })).code).toBe(201);
  const winners = new Map<string, number>();
  const increment = async (api: ApiInMemory): Promise<boolean> => {
    const { body } = await api.send('GET', `${WIDGETS}/w`);
    const next = { ...body, spec: { ...body.spec, replicas: body.spec.replicas + 1 } };
    const { code } = await api.send('PUT', `${WIDGETS}/w`, { body: next });
    if (code === 200) winners.set(body.metadata.resourceVersion, (winners.get(body.metadata.resourceVersion) ?? 0) + 1);
    else expect(code).toBe(409);
    return code === 200;
  };
  let acknowledged = 0;
  for (let round = 0; round < 10; round += 1) {
    const outcomes = await Promise.all(all.map(increment));
    acknowledged += outcomes.filter(Boolean).length;
  }
  expect((await all[1]!.send('GET', `${WIDGETS}/w`)).body.spec.replicas).toBe(acknowledged);
  expect([...winners.values()].every((count) => count === 1)).toBe(true);
});

const step = fc.record({
  by: fc.nat(2),
  name: fc.constantFrom('a', 'b', 'c'),
  what: fc.constantFrom('create', 'change', 'status', 'delete', 'follow'),
  size: fc.integer({ min: 1, max: 100 }),
});

it('L9 a client that lists, watches and resumes ends with the state of the server', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
      const all = await processes(3);
      const listed = (await all[0]!.send('GET', WIDGETS)).body;
      let version: string = listed.metadata.resourceVersion;
      const copy = new Map<string, unknown>();
      const follow = async (api: ApiInMemory): Promise<void> => {
        const path = `${WIDGETS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=${version}`;
        for (const { type, object } of eventsOf(await api.send('GET', path))) {
          expect(Number(object.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(version));
          version = object.metadata.resourceVersion ?? version;
          if (type === 'DELETED') copy.delete(object.metadata.name ?? '');
          else if (type !== 'BOOKMARK') copy.set(object.metadata.name ?? '', object);
        }
      };
      const contentType = 'application/merge-patch+json';
      for (const { by, name, what, size } of steps) {
        const api = all[by]!;
        const path = `${WIDGETS}/${name}`;
        if (what === 'create') await api.send('POST', WIDGETS, { body: widget(name, { size }) });
        else if (what === 'change') await api.send('PATCH', path, { contentType, body: { spec: { size } } });
        else if (what === 'status')
          await api.send('PATCH', `${path}/status`, { contentType, body: { status: { replicas: size } } });
        else if (what === 'delete') await api.send('DELETE', path);
        else await follow(api);
      }
      await follow(all[0]!);
      const { items } = (await all[1]!.send('GET', WIDGETS)).body as { items: { metadata: { name: string } }[] };
      const state = items.map((each) => ({ apiVersion: 'example.com/v1', kind: 'Widget', ...each }));
      expect([...copy.values()].toSorted(byName)).toEqual(state.toSorted(byName));
    }),
    { numRuns: 40 },
  );
});

const nameOf = (object: unknown): string => (object as { metadata: { name: string } }).metadata.name;
const byName = (one: unknown, other: unknown): number => (nameOf(one) < nameOf(other) ? -1 : 1);
