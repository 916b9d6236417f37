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

/** Nodes with volumes to check, with the second at which a pod last left them. */
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

it('a later change of a terminated pod leaves the time unchanged', async () => {
  const fleet = await fleetWithPod(CLAIM);
  fleet.at(7);
  await setPhase(fleet, 'Succeeded');
  await fleet.streams();
  fleet.at(9);
  await setLabel(fleet, 'later');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([['a-0', 7]]);
});

it('a change of a running pod affects no volumes', async () => {
  const fleet = await fleetWithPod(CLAIM);
  await setLabel(fleet, 'now');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([]);
});

it('the end of a pod without volumes affects none', async () => {
  const fleet = await fleetWithPod([{ name: 'settings', configMap: { name: 'settings' } }]);
  await setPhase(fleet, 'Succeeded');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([]);
});

it('the end of an unbound pod affects none', async () => {
  const { fleet } = await settledFleet({ a: 1 });
  await fleet.addPod('db', '', { volumes: CLAIM });
  await setPhase(fleet, 'Failed');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([]);
});

it('two pods that leave a node together cause one write for its volumes', async () => {
  const fleet = await fleetWithPod(CLAIM);
  await fleet.addPod('web', 'a-0', { volumes: CLAIM });
  await fleet.streams();
  fleet.at(7);
  await fleet.removePod('db');
  await fleet.removePod('web');
  await fleet.streams();
  expect(await lookedAt(fleet)).toEqual([['a-0', 7]]);
});
