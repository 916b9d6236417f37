/** Write units of the smallest object of each kind, as docs/cost.md says. `WRITE_DOCS=1` writes the table. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { resources } from '../../shared/kinds/registry.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { apiInMemory } from '../support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../support/application-objects.ts';

const DOC = fileURLToPath(new URL('../../docs/cost.md', import.meta.url));
const HEAD = '| kinds | create | update | delete |\n|---|---|---|---|\n';
const MERGE = 'application/merge-patch+json';

interface Units {
  readonly create: number;
  readonly update: number;
  readonly delete: number;
}

async function unitsOf(resource: string, path: string): Promise<Units> {
  let writeUnits = 0;
  const items = memoryItemStore({
    onConsumed: (units) => {
      writeUnits += units.writeUnits;
    },
  });
  const api = apiInMemory({ items });
  const send = async (method: string, to: string, body?: unknown): Promise<number> => {
    writeUnits = 0;
    const answer = await api.send(method, to, { body, ...(method === 'PATCH' ? { contentType: MERGE } : {}) });
    if (answer.code >= 300) throw new Error(`${method} ${to}: ${answer.text}`);
    return writeUnits;
  };
  // The first object of a cluster, and of a kind, makes others.
  const object = APPLICATION_OBJECTS[resource];
  await send('POST', path, { ...object, metadata: { name: 'first' } });
  await send('GET', path);
  return {
    create: await send('POST', path, { ...object, metadata: { name: 'x1' } }),
    update: await send('PATCH', `${path}/x1`, { metadata: { labels: { a: 'b' } } }),
    delete: await send('DELETE', `${path}/x1`),
  };
}

it('the units of each kind are those of docs/cost.md', async () => {
  const kinds = new Map<string, string[]>();
  for (const { group, version, resource, namespaced, servedFrom } of resources) {
    if (APPLICATION_OBJECTS[resource] === undefined || servedFrom !== undefined) continue;
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const units = await unitsOf(resource, `${root}${namespaced ? '/namespaces/default' : ''}/${resource}`);
    const key = `${units.create} | ${units.update} | ${units.delete}`;
    kinds.set(key, [...(kinds.get(key) ?? []), resource]);
  }
  const rows = [...kinds].map(([units, names]) => `| ${names.toSorted().join(', ')} | ${units} |\n`).toSorted();
  const text = readFileSync(DOC, 'utf8');
  const from = text.indexOf(HEAD) + HEAD.length;
  const end = from + text.slice(from).search(/^(?!\|)/m);
  if (process.env['WRITE_DOCS'] === '1') writeFileSync(DOC, text.slice(0, from) + rows.join('') + text.slice(end));
  else expect(text.slice(from, end)).toBe(rows.join(''));
});
