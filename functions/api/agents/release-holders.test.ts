import { expect, it } from 'vitest';
import type { ResourceStorage } from '../../../shared/api/resource-storage.ts';
import { releaseHolders } from './release-holders.ts';

it('reads each Node once per minute, and one that does not exist with each question', async () => {
  const read: string[] = [];
  const storage: Pick<ResourceStorage, 'get'> = {
    async get(_, name) {
      read.push(name);
      if (name === 'gone') return undefined;
      const annotations = { 'nodekeeper.dev/agent-version': '1.0.0' };
      return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { ring: 'canary' }, annotations } };
    },
  };
  const holders = releaseHolders({ storageOf: () => storage as ResourceStorage });
  const n1 = { labels: { ring: 'canary' }, version: '1.0.0' };
  for (let second = 0; second < 60; second += 1) {
    expect(await holders(['n1', 'gone'], second * 1_000)).toEqual([n1, undefined]);
  }
  expect(read.filter((name) => name === 'n1')).toHaveLength(1);
  expect(read.filter((name) => name === 'gone')).toHaveLength(60);
  await holders(['n1'], 60_000);
  expect(read.filter((name) => name === 'n1')).toHaveLength(2);
});
