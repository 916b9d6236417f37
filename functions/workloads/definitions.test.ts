import { describe, expect, it } from 'vitest';
import { definitionCatalog } from '../../shared/kinds/customresourcedefinitions/catalog.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { apiInMemory } from '../../test/support/api-in-memory.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from '../../test/support/custom-definition.ts';
import { servedWorkloads } from '../../test/support/served-workloads.ts';
import { syncDefinition } from './definitions.ts';

const NAME = `${DEFINITIONS}/widgets.example.com`;
const WIDGETS = widgetsIn('default');
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

async function withDefinition() {
  const cluster = servedWorkloads();
  await cluster.ok('POST', DEFINITIONS, widgetDefinition());
  await cluster.settle();
  const { items, api } = cluster;
  const clock = { nowMs: api.nowMs };
  const objects = clusterObjects({ items, clock, random: { uuid: () => 'u', fraction: () => 0.5 } });
  const definitions = definitionCatalog({ items, clock, objects });
  const code = async (path: string) => (await cluster.api.send('GET', path)).code;
  const ownerOf = (object: { apiVersion: string; kind: string; metadata: { name: string; uid: string } }) => ({
    ...{ apiVersion: object.apiVersion, kind: object.kind, name: object.metadata.name, uid: object.metadata.uid },
  });
  return { ...cluster, objects, dependencies: { items, clock, objects, definitions }, code, ownerOf };
}

describe('a definition that is deleted', () => {
  it('is removed after its objects, in all namespaces, and with its sections', async () => {
    const cluster = await withDefinition();
    for (let index = 0; index < 40; index += 1) await cluster.ok('POST', WIDGETS, widget(`w${index}`));
    await cluster.ok('POST', widgetsIn('kube-system'), widget('other'));
    await cluster.ok('DELETE', NAME);
    await cluster.settle();
    expect(await cluster.code(NAME)).toBe(404);
    expect((await cluster.objects.list({ resource: 'widgets.example.com' })).objects).toEqual([]);
    const parts = await cluster.items.query({ table: 'objects', pk: 'p#widgets.example.com', consistent: true });
    expect(parts.items.length).toBeGreaterThan(0);
    expect(parts.items.filter(({ ttl }) => ttl === undefined)).toEqual([]);
    await cluster.ok('POST', DEFINITIONS, widgetDefinition());
    expect((await cluster.ok('GET', WIDGETS)).items).toEqual([]);
  });

  it('waits for objects with finalizers, and says how many remain', async () => {
    const cluster = await withDefinition();
    await cluster.ok('POST', WIDGETS, {
      ...widget('held'),
      metadata: { name: 'held', finalizers: ['example.com/hold'] },
    });
    await cluster.ok('DELETE', NAME);
    await cluster.settle();
    const held = await cluster.ok('GET', NAME);
    expect(held.status.conditions.at(-1)).toMatchObject({
      type: 'Terminating',
      reason: 'InstanceDeletionInProgress',
      message: '1 CustomResources remain: their finalizers are not removed',
    });
    await cluster.api.send('PATCH', `${WIDGETS}/held`, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { finalizers: null } },
    });
    await cluster.tickAfter(20_000);
    expect(await cluster.code(NAME)).toBe(404);
  });

  it('lets a definition that waits for its names have them', async () => {
    const cluster = await withDefinition();
    const other = widgetDefinition(undefined, { plural: 'gadgets', singular: 'gadget', shortNames: ['gd'] });
    const { status } = await cluster.ok('POST', DEFINITIONS, other);
    expect(status.conditions).toMatchObject([{ status: 'False' }, { status: 'False' }]);
    await cluster.ok('DELETE', NAME);
    await cluster.settle();
    const accepted = (await cluster.ok('GET', `${DEFINITIONS}/gadgets.example.com`)).status.conditions;
    expect(accepted).toMatchObject([{ status: 'True' }, { status: 'True' }]);
  });

  it('refuses a creation that was validated before the deletion and is committed after it', async () => {
    const cluster = await withDefinition();
    let meanwhile: (() => Promise<unknown>) | undefined = async () => {
      await cluster.ok('DELETE', NAME);
      await cluster.settle();
    };
    const late: ItemStore = {
      ...cluster.items,
      async transact(writes) {
        const work = writes.some(({ key }) => key.pk.startsWith('o#widgets.example.com#')) ? meanwhile : undefined;
        if (work !== undefined) meanwhile = undefined;
        await work?.();
        return cluster.items.transact(writes);
      },
    };
    const { code } = await apiInMemory({ items: late }).send('POST', WIDGETS, { body: widget('late') });
    expect([meanwhile, code, await cluster.code(NAME)]).toEqual([undefined, 404, 404]);
    expect((await cluster.objects.list({ resource: 'widgets.example.com' })).objects).toEqual([]);
  });

  it('is removed once, however many workers run, and nothing is created meanwhile', async () => {
    const cluster = await withDefinition();
    for (let index = 0; index < 20; index += 1) await cluster.ok('POST', WIDGETS, widget(`w${index}`));
    const creations = Array.from({ length: 20 }, (_, index) =>
      cluster.api.send('POST', WIDGETS, { body: widget(`late${index}`) }),
    );
    const deletion = cluster.api.send('DELETE', NAME);
    const works = [1, 2, 3].map(() => syncDefinition(cluster.dependencies, 'widgets.example.com'));
    const codes = (await Promise.all(creations)).map(({ code }) => code);
    await Promise.all([deletion, ...works]);
    await cluster.settle();
    expect(codes.filter((code) => ![201, 403, 404].includes(code))).toEqual([]);
    expect(await cluster.code(NAME)).toBe(404);
    expect((await cluster.objects.list({ resource: 'widgets.example.com' })).objects).toEqual([]);
  });
});

describe('garbage collection', () => {
  it('deletes what a custom resource owned, and a custom resource without its owner', async () => {
    const cluster = await withDefinition();
    const owner = await cluster.ok('POST', WIDGETS, widget('owner'));
    await cluster.ok('POST', CONFIG_MAPS, { metadata: { name: 'owned', ownerReferences: [cluster.ownerOf(owner)] } });
    const map = await cluster.ok('POST', CONFIG_MAPS, { metadata: { name: 'map' } });
    const metadata = {
      name: 'dependent',
      ownerReferences: [{ ...cluster.ownerOf(map), apiVersion: 'v1', kind: 'ConfigMap' }],
    };
    await cluster.ok('POST', WIDGETS, { ...widget('dependent'), metadata });
    await cluster.settle();
    expect([await cluster.code(`${CONFIG_MAPS}/owned`), await cluster.code(`${WIDGETS}/dependent`)]).toEqual([
      200, 200,
    ]);
    await cluster.ok('DELETE', `${WIDGETS}/owner`);
    await cluster.ok('DELETE', `${CONFIG_MAPS}/map`);
    await cluster.settle();
    expect([await cluster.code(`${CONFIG_MAPS}/owned`), await cluster.code(`${WIDGETS}/dependent`)]).toEqual([
      404, 404,
    ]);
  });

  it('deletes an object of an owner that never was, and keeps one of an owner of an unknown kind', async () => {
    const cluster = await withDefinition();
    const owned = (name: string, kind: string) => ({
      metadata: { name, ownerReferences: [{ apiVersion: 'example.com/v1', kind, name: 'absent', uid: `u-${name}` }] },
    });
    await cluster.ok('POST', CONFIG_MAPS, owned('orphan', 'Widget'));
    await cluster.ok('POST', CONFIG_MAPS, owned('unknown', 'Gadget'));
    await cluster.settle();
    expect([await cluster.code(`${CONFIG_MAPS}/orphan`), await cluster.code(`${CONFIG_MAPS}/unknown`)]).toEqual([
      404, 200,
    ]);
  });

  it('in the foreground waits for the dependents of a custom resource', async () => {
    const cluster = await withDefinition();
    const owner = await cluster.ok('POST', WIDGETS, widget('owner'));
    const reference = { ...cluster.ownerOf(owner), blockOwnerDeletion: true };
    await cluster.ok('POST', CONFIG_MAPS, {
      metadata: { name: 'owned', ownerReferences: [reference], finalizers: ['example.com/x'] },
    });
    await cluster.ok('DELETE', `${WIDGETS}/owner`, { propagationPolicy: 'Foreground' });
    await cluster.settle();
    expect(await cluster.code(`${WIDGETS}/owner`)).toBe(200);
    await cluster.api.send('PATCH', `${CONFIG_MAPS}/owned`, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { finalizers: null } },
    });
    await cluster.settle();
    expect(await cluster.code(`${WIDGETS}/owner`)).toBe(404);
  });
});

describe('a namespace that is deleted', () => {
  it('is removed with its custom resources', async () => {
    const cluster = await withDefinition();
    await cluster.ok('POST', '/api/v1/namespaces', { metadata: { name: 'team' } });
    await cluster.ok('POST', widgetsIn('team'), widget('a'));
    await cluster.ok('DELETE', '/api/v1/namespaces/team');
    await cluster.settle();
    expect(await cluster.code('/api/v1/namespaces/team')).toBe(404);
    expect((await cluster.objects.list({ resource: 'widgets.example.com' })).objects).toEqual([]);
  });
});

describe('a quota', () => {
  it('counts custom resources again when they are deleted', async () => {
    const cluster = await withDefinition();
    const path = '/api/v1/namespaces/default/resourcequotas';
    await cluster.ok('POST', path, { metadata: { name: 'q' }, spec: { hard: { 'count/widgets.example.com': '2' } } });
    await cluster.settle();
    await cluster.ok('POST', WIDGETS, widget('a'));
    await cluster.ok('POST', WIDGETS, widget('b'));
    expect((await cluster.api.send('POST', WIDGETS, { body: widget('c') })).code).toBe(403);
    await cluster.ok('DELETE', `${WIDGETS}/a`);
    await cluster.settle();
    expect((await cluster.ok('GET', `${path}/q`)).status.used).toEqual({ 'count/widgets.example.com': '1' });
    await cluster.ok('POST', WIDGETS, widget('c'));
  });
});
