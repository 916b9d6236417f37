import { describe, expect, it } from 'vitest';
import { apiVersionOf } from '../kubernetes/normal-form.ts';
import { METRICS_GROUP } from './node-metrics/serve.ts';
import { resources } from './registry.ts';
import { findStored, shardsOf, storedResourceOf, storedResources } from './resources.ts';

/** Metrics are computed. */
const served = resources.filter(({ group }) => group !== METRICS_GROUP);

describe('the kinds that controllers know', () => {
  it('are the kinds that the API serves from their own objects, in its order', () => {
    const own = served.filter(({ servedFrom }) => servedFrom === undefined).map(({ resource }) => resource);
    expect(storedResources.map(({ resource }) => resource)).toEqual(own);
  });

  it('have the shards, the scope, the verbs and the selectable fields that the API uses', () => {
    for (const { group, version, kind, namespaced, verbs, shards, selectableFields, servedFrom, resource } of served) {
      if (servedFrom !== undefined) continue;
      expect(findStored(resource)).toMatchObject({ group, version, kind, namespaced, verbs, shards, selectableFields });
    }
  });

  it('have plural names of their own', () => {
    expect(new Set(storedResources.map(({ resource }) => resource)).size).toBe(storedResources.length);
  });

  it('are found by every apiVersion that the API serves, and by no other', () => {
    for (const { group, version, kind, resource, servedFrom } of served) {
      const found = storedResourceOf(apiVersionOf({ group, version }), kind);
      expect(found?.resource, `${group}/${version} ${kind}`).toBe(servedFrom?.resource ?? resource);
    }
    const versions = storedResources.flatMap((each) => [apiVersionOf(each), ...(each.otherApiVersions ?? [])]);
    expect(versions).toHaveLength(served.length);
    expect(storedResourceOf('v2', 'Pod')).toBeUndefined();
  });

  it('have one shard unless they say otherwise', () => {
    expect(['pods', 'nodes', 'events', 'leases', 'unknown'].map(shardsOf)).toEqual([8, 8, 4, 1, 1]);
  });
});
