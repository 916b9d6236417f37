/** Large definitions and their objects on every store: sizes of items, transactions, conditions of creations. */
import { expect, it } from 'vitest';
import { ITEM_BYTES_MAX, type ItemStore, itemBytes } from '../../shared/store/item-store.ts';
import { apiInMemory, MERGE } from '../support/api-in-memory.ts';
import {
  DEFINITIONS,
  longSchema,
  widget,
  widgetDefinition,
  widgetsIn,
  widgetVersion,
} from '../support/custom-definition.ts';
import { describeOnStores } from './stores.ts';

const partsOf = async (items: ItemStore, plural: string) =>
  (await items.query({ table: 'objects', pk: `p#${plural}.example.com`, consistent: true })).items;

describeOnStores('definitions', ({ items }) => {
  it('of 1.4 million characters that hardly compress are stored in parts that fit, and replaced', {
    timeout: 120_000,
  }, async () => {
    const api = apiInMemory({ items: items() });
    const versionsOf = (characters: number) => [
      widgetVersion('v1', {
        schema: { openAPIV3Schema: longSchema(characters) },
        selectableFields: [],
        subresources: {},
      }),
    ];
    const names = { plural: 'larges', kind: 'Large', shortNames: [] };
    const created = await api.send('POST', DEFINITIONS, { body: widgetDefinition(versionsOf(1_400_000), names) });
    expect(created.code, created.text.slice(0, 300)).toBe(201);
    const parts = await partsOf(items(), 'larges');
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) expect(itemBytes(part)).toBeLessThan(ITEM_BYTES_MAX);
    const path = `${DEFINITIONS}/larges.example.com`;
    expect((await api.send('GET', path)).body.spec).toEqual(created.body.spec);
    const labelled = await api.send('PATCH', path, { contentType: MERGE, body: { metadata: { labels: { a: 'b' } } } });
    expect(labelled.code).toBe(200);
    const kept = (await partsOf(items(), 'larges')).filter(({ ttl }) => ttl === undefined);
    // The managedFields have changed, and their former section expires.
    expect(kept).toHaveLength(parts.length);
    const replaced = await api.send('PATCH', path, {
      contentType: MERGE,
      body: { spec: { versions: versionsOf(1_000) } },
    });
    expect(replaced.code).toBe(200);
    const left = (await partsOf(items(), 'larges')).filter(({ ttl }) => ttl === undefined);
    expect(left.length).toBeLessThan(parts.length);
    expect((await api.send('GET', path)).body.spec).toEqual(replaced.body.spec);
    expect(api.faults).toEqual([]);
  });

  it('that change while objects are created refuse none of them', { timeout: 60_000 }, async () => {
    const [api, other] = [apiInMemory({ items: items() }), apiInMemory({ items: items(), seed: 2 })];
    await api.send('POST', DEFINITIONS, { body: widgetDefinition() });
    const creations = Array.from({ length: 10 }, (_, index) =>
      other.send('POST', widgetsIn('default'), { body: widget(`w${index}`) }),
    );
    const changes = Array.from({ length: 3 }, (_, index) =>
      api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
        contentType: MERGE,
        body: { metadata: { labels: { n: String(index) } } },
      }),
    );
    const made = await Promise.all(creations);
    expect(made.map(({ code }) => code)).toEqual(Array(10).fill(201));
    expect((await Promise.all(changes)).map(({ code }) => code)).toEqual([200, 200, 200]);
  });
});
