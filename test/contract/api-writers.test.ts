/**
 * What the API promises to writers who meet, on every store: the map keeps it by being single, the engine by
 * conditions.
 */
import { expect, it } from 'vitest';
import { apiInMemory, MERGE, NODES, node, pod, podsIn, READY } from '../support/api-in-memory.ts';
import { describeOnStores } from './stores.ts';

const WRITERS = 12;
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';

describeOnStores('writers who meet at the API', ({ items }) => {
  it('L8: of those who name one version exactly one wins', async () => {
    const api = apiInMemory({ items: items() });
    const { body } = await api.send('POST', NODES, { body: node('one-version') });
    const path = `${NODES}/one-version`;
    const answers = await Promise.all(
      Array.from({ length: WRITERS }, (_, writer) =>
        api.send('PUT', path, {
          body: { ...body, metadata: { ...body.metadata, labels: { writer: String(writer) } } },
        }),
      ),
    );
    expect(answers.map(({ code }) => code).sort()).toEqual([200, ...Array(WRITERS - 1).fill(409)]);
    const winner = answers.find(({ code }) => code === 200)!;
    expect((await api.send('GET', path)).body).toEqual(winner.body);
    expect(api.faults).toEqual([]);
  });

  it('L8: no acknowledged patch is lost', async () => {
    const api = apiInMemory({ items: items() });
    await api.send('POST', NODES, { body: node('patched') });
    const path = `${NODES}/patched`;
    const answers = await Promise.all(
      Array.from({ length: WRITERS }, (_, writer) =>
        api.send('PATCH', path, { body: { metadata: { labels: { [`w${writer}`]: 'x' } } }, contentType: MERGE }),
      ),
    );
    const acknowledged = answers.flatMap(({ code }, writer) => (code === 200 ? [`w${writer}`] : []));
    expect(acknowledged).toHaveLength(WRITERS);
    const { body } = await api.send('GET', path);
    expect(Object.keys(body.metadata.labels).sort()).toEqual(acknowledged.sort());
    expect(api.faults).toEqual([]);
  });

  it('never evicts more than a budget allows', async () => {
    const api = apiInMemory({ items: items() });
    const pods = podsIn('default');
    const names = Array.from({ length: WRITERS }, (_, index) => `p${index}`);
    for (const name of names) {
      const spec = { nodeName: 'a', terminationGracePeriodSeconds: 0 };
      await api.send('POST', pods, { body: pod(name, { metadata: { labels: { app: 'web' } }, spec }) });
      await api.send('PATCH', `${pods}/${name}/status`, { body: { status: READY }, contentType: MERGE });
    }
    const spec = { selector: { matchLabels: { app: 'web' } }, minAvailable: WRITERS - 3 };
    await api.send('POST', BUDGETS, { body: { metadata: { name: 'b' }, spec } });
    const answers = await Promise.all(names.map((name) => api.send('POST', `${pods}/${name}/eviction`, { body: {} })));
    const granted = answers.filter(({ code }) => code === 201).length;
    expect(granted).toBeGreaterThan(0);
    expect(answers.every(({ code }) => code === 201 || code === 429)).toBe(true);
    expect((await api.send('GET', pods)).body.items).toHaveLength(WRITERS - granted);
    expect(granted).toBeLessThanOrEqual(3);
    expect(api.faults).toEqual([]);
  });
});
