import { describe, expect, it } from 'vitest';
import { compileFilters } from '../../local/streams/filter.ts';
import { healthStreamManifest } from '../../shared/controllers/health-stream/manifest.ts';
import { objectStreamManifest } from '../../shared/controllers/object-stream/manifest.ts';
import { passesHealthFilter, passesObjectFilter } from '../../simulation/streams.ts';

const patternsOf = (filters: readonly object[]) => filters.map((filter) => JSON.stringify(filter));

const TYPES = ['INSERT', 'MODIFY', 'REMOVE'] as const;

describe('the filters of simulated streams', () => {
  it('let through what the deployed ones do', () => {
    const health = compileFilters(patternsOf(healthStreamManifest.triggers[0].filters), 'health');
    const objects = compileFilters(patternsOf(objectStreamManifest.triggers[0].filters), 'objects');
    for (const type of TYPES) {
      for (const suspect of [true, false]) {
        const image = type === 'REMOVE' ? undefined : { pk: 's01', sk: 'a', ...(suspect ? { s: 1 } : {}) };
        const wire = image === undefined ? {} : { NewImage: suspect ? { s: { N: '1' } } : { sk: { S: 'a' } } };
        const change = { type, ...(image === undefined ? {} : { newImage: image }) };
        expect([type, suspect, passesHealthFilter(change)]).toEqual([
          type,
          suspect,
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
