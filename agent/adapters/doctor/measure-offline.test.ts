import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { REMEMBERED_DIRECTORY, stateText } from '../../rules/remembered-state.ts';
import { stateGenerations } from '../system/state-generations.ts';
import { type OfflineConfig, readOffline, refusalOf } from './measure-offline.ts';

const OWNER = { nodeName: 'edge-1', clusterId: 'c1' };
const podWith = (name: string, image: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: name },
  spec: { containers: [{ name: 'main', image }] },
});

/** A podman that has one image, and writes down what it is asked for. */
function podmanWith(folder: string, known: string): { readonly program: string; asked(): string } {
  const [program, log] = [join(folder, 'podman'), join(folder, 'asked')];
  const answers = `case "$5" in ${known}) echo '[{}]';; *broken*) echo 'no disk' >&2; exit 1;; *) echo 'image not known' >&2; exit 125;; esac`;
  writeFileSync(program, `#!/bin/sh\necho "$5" >> ${log}\n${answers}\n`, { mode: 0o755 });
  writeFileSync(log, '');
  return { program, asked: () => readFileSync(log, 'utf8').trim() };
}

async function reading(
  pods: readonly ReturnType<typeof podWith>[],
  more: Partial<OfflineConfig> & { readonly staticPods?: readonly object[] } = {},
) {
  const folder = folderForTest();
  const { staticPods, ...settings } = more;
  const staticPodPath = staticPods === undefined ? '' : join(folder, 'manifests');
  if (staticPods !== undefined) mkdirSync(staticPodPath);
  for (const [index, pod] of (staticPods ?? []).entries()) {
    writeFileSync(join(staticPodPath, `${index}.yaml`), JSON.stringify(pod));
  }
  await stateGenerations(join(folder, REMEMBERED_DIRECTORY)).write(
    stateText(OWNER, { pods, configMaps: [] }, undefined),
  );
  const podman = podmanWith(folder, 'web:1');
  const config = {
    runtime: 'podman',
    rootDirectory: folder,
    rememberPods: 'all',
    ...OWNER,
    staticPodPath,
    ...settings,
  };
  const read = await readOffline(config as OfflineConfig, podman.program);
  return { ...read, asked: podman.asked() };
}

describe('what a machine has without a network', () => {
  it('are its remembered and its static pods, and their images as far as podman has them', async () => {
    const pods = [podWith('a', 'web:1'), podWith('b', 'gone:1'), podWith('c', 'web:latest'), podWith('d', '--x:1')];
    const found = await reading(pods, { staticPods: [podWith('s', 'disk:1')] });
    expect(found.remembered).toEqual({ kind: 'read', pods, refusals: [], isAnyUsable: true });
    expect(found.staticPods.map(({ metadata }) => metadata.name)).toEqual(['s-edge-1']);
    expect(found.staticFaults).toEqual([]);
    expect(found.images).toEqual({ kind: 'read', here: new Set(['web:1']) });
    // Neither an image that is pulled at each start, nor a name that is an option.
    expect(found.asked.split('\n')).toEqual(['disk:1', 'gone:1', 'web:1']);
  });

  it('is unknown when podman fails', async () => {
    const { images } = await reading([podWith('a', 'broken:1')]);
    expect(images).toEqual({ kind: 'failed', why: expect.stringMatching(/image inspect: no disk$/) });
  });

  it('needs no image with another runtime', async () => {
    const { images, asked } = await reading([podWith('a', 'web:1')], { runtime: 'exec' });
    expect([images, asked]).toEqual([{ kind: 'read', here: new Set() }, '']);
  });

  it('has no remembered pods of another node, and none when they are switched off', async () => {
    const other = await reading([podWith('a', 'web:1')], { nodeName: 'edge-2' });
    const refusals = ['its nodeName is "edge-1"'];
    expect(other.remembered).toEqual({ kind: 'read', pods: [], refusals, isAnyUsable: false });
    const off = await reading([podWith('a', 'web:1')], { rememberPods: 'none' });
    expect([off.remembered, off.asked]).toEqual([{ kind: 'off' }, '']);
  });

  it('says why static pods cannot be read', async () => {
    const { staticPods, staticFaults } = await reading([], { staticPods: [{ kind: 'Service' }] });
    expect(staticPods).toEqual([]);
    expect(staticFaults).toEqual([expect.stringMatching(/^static pods cannot be read: .*0\.yaml/)]);
  });

  it('has no static pods without a directory for them', async () => {
    const { staticPods, staticFaults } = await reading([]);
    expect([staticPods, staticFaults]).toEqual([[], []]);
  });
});

it.each([
  ['EACCES', { kind: 'forbidden', why: 'a fault' }],
  ['EPERM', { kind: 'forbidden', why: 'a fault' }],
  ['ENOENT', undefined],
])('remembered pods that cannot be read by %s are forbidden: %o', (code, refusal) => {
  expect(refusalOf(Object.assign(new Error('a fault'), { code }))).toEqual(refusal);
});
