import { expect, it } from 'vitest';
import { type ControlledFleet, START_MS, settledFleet } from '../../../test/support/controlled-fleet.ts';
import { podGcStore } from './work-list-store.ts';

const CLAIM = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];

async function fleetWithPod(volumes: Record<string, unknown>[], phase = 'Running') {
  const { fleet } = await settledFleet({ a: 1 });
  await fleet.addPod('db', 'a-0', { volumes, phase });
  await fleet.streams();
  return fleet;
}

/** Nodes whose volumes are to be looked at, with the second of the pod that left last. */
const lookedAt = async (fleet: ControlledFleet) =>
  (await podGcStore(fleet.tables).read()).volumes.map(({ nodeName, touchedAtMs }) => [
    nodeName,
    (touchedAtMs - START_MS) / 1_000,
  ]);

const setPhase = (fleet: ControlledFleet, phase: string) =>
  fleet.changePod('db', (pod) => ({ ...pod, status: { ...pod.status, phase } }));
const setLabel = (fleet: ControlledFleet, value: string) =>
  fleet.changePod('db', (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { changed: value } } }));

it.each(['Succeeded', 'Failed'])(
  'volumes of a node are looked at when a pod with volumes is %s there',
  async (phase) => {
    const fleet = await fleetWithPod(CLAIM);
    fleet.at(7);
    await setPhase(fleet, phase);
    await fleet.streams();
    expect(await lookedAt(fleet)).toEqual([['a-0', 7]]);
  },
);

it('a later change of a pod that has ended leaves the time as it was', async () => {
  const fleet = await fleetWithPod(CLAIM);
  fleet.at(7);
  await setPhase(fleet, 'Succeeded');
  await fleet.streams();
  fleet.at(9);
  await setLabel(fleet, 'later');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([['a-0', 7]]);
});

it('a change of a pod that runs on touches no volumes', async () => {
  const fleet = await fleetWithPod(CLAIM);
  await setLabel(fleet, 'now');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([]);
});

it('the end of a pod without volumes touches none', async () => {
  const fleet = await fleetWithPod([{ name: 'settings', configMap: { name: 'settings' } }]);
  await setPhase(fleet, 'Succeeded');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([]);
});

it('the end of a pod that no node runs touches none', async () => {
  const { fleet } = await settledFleet({ a: 1 });
  await fleet.addPod('db', '', { volumes: CLAIM });
  await setPhase(fleet, 'Failed');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([]);
});

it('volumes of a node are looked at once for two pods that leave it together', async () => {
  const fleet = await fleetWithPod(CLAIM);
  await fleet.addPod('web', 'a-0', { volumes: CLAIM });
  await fleet.streams();
  fleet.at(7);
  await fleet.removePod('db');
  await fleet.removePod('web');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([['a-0', 7]]);
});
