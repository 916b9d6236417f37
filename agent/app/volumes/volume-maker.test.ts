import { expect, it } from 'vitest';
import type { KubeApi } from '../../ports/kube-api.ts';
import { VolumeMaker } from './volume-maker.ts';

const volume = {
  metadata: { name: 'pvc-1' },
  spec: {
    volumeMode: 'Filesystem',
    capacity: { storage: '1Mi' },
    storageClassName: 'local',
    claimRef: { namespace: 'default', name: 'data', uid: 'u' },
  },
};

it.each([403, 422])(
  'keeps the directory when its volume is refused with %d: an earlier request may have made it',
  async (status) => {
    const steps: string[] = [];
    const api = {
      async send({ method, path }: { method: string; path: string }) {
        steps.push(`${method} ${path}`);
        if (method === 'GET')
          return {
            kind: 'answered',
            status: 200,
            body: { kind: 'NodeVolumeWorkList', items: [{ id: 'w', provision: volume }] },
          };
        return { kind: 'answered', status, body: { message: 'refused' } };
      },
    } as unknown as KubeApi;
    const maker = new VolumeMaker({
      nodeName: 'edge-1',
      api,
      directories: {
        freeBytes: () => 10_000_000,
        make: (name: string) => `/volumes/${name}`,
        async remove(name: string) {
          steps.push(`remove ${name}`);
        },
      } as never,
      log: { warn: () => {} } as never,
      stop: new AbortController().signal,
      recordEvent: (_, { reason }) => steps.push(reason),
    });
    maker.requested();
    await maker.settled();
    expect(steps.slice(1)).toEqual(['POST /api/v1/persistentvolumes', 'ProvisioningFailed']);
  },
);
