import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AttachVolumeCommand,
  CreateVolumeCommand,
  DescribeInstanceStatusCommand,
  DescribeInstancesCommand,
  type DescribeInstancesCommandInput,
  DescribeVolumesCommand,
  DetachVolumeCommand,
  type EC2Client,
  paginateDescribeInstances,
  RunInstancesCommand,
  StartInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { InstanceStateChange } from '../../demo/ec2/cloud-world.ts';
import { ec2Client } from '../../shared/aws/ec2/sdk-api.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { type LocalCloud, type LocalCloudOptions, startLocalCloud } from './server.ts';

const T0 = Date.UTC(2026, 10, 20);
const ID = 'i-0123456789abcdef0';
const FOREIGN = 'i-0123456789abcdef1';
const UNKNOWN = 'i-00000000deadbeef0';

describe('an EC2 on loopback, to the real SDK', () => {
  let nowMs: number;
  let cloud: LocalCloud;
  let client: EC2Client;

  const start = async (more: Partial<LocalCloudOptions> = {}): Promise<void> => {
    cloud = await startLocalCloud({
      clock: { nowMs: () => nowMs },
      region: 'us-east-1',
      accountId: '000000000000',
      ...more,
    });
    client = ec2Client({
      region: 'us-east-1',
      endpoint: cloud.endpoint,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      maxAttempts: 1,
    });
  };
  const stop = async (): Promise<void> => {
    client.destroy();
    await cloud.stop();
  };
  const aRunning = (instanceId: string, more = {}): void =>
    cloud.world.put({ instanceId, zone: 'us-east-1a', instanceType: 'm7g.large', launchedAtMs: T0 - 1_000, ...more });

  beforeEach(async () => {
    nowMs = T0;
    await start();
    aRunning(ID);
    aRunning(FOREIGN, { accountId: '999999999999' });
  });
  afterEach(stop);

  const codeOf = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(
      () => 'none',
      (error: Error) => error.name,
    );
  const idsIn = async (input: DescribeInstancesCommandInput): Promise<string[]> => {
    const { Reservations = [] } = await client.send(new DescribeInstancesCommand(input));
    return Reservations.flatMap(({ Instances = [] }) => Instances.flatMap(({ InstanceId }) => InstanceId ?? []));
  };

  it('fails a call that names an unknown or malformed id, and is silent about other accounts', async () => {
    const byIds = (...InstanceIds: string[]) => client.send(new DescribeInstancesCommand({ InstanceIds }));
    expect(await codeOf(byIds(ID, UNKNOWN))).toBe('InvalidInstanceID.NotFound');
    expect(await codeOf(byIds(ID, 'i-xyz'))).toBe('InvalidInstanceID.Malformed');
    expect(await idsIn({ InstanceIds: [ID, FOREIGN] })).toEqual([ID]);
    expect(await idsIn({ Filters: [{ Name: 'instance-id', Values: [ID, FOREIGN, UNKNOWN] }] })).toEqual([ID]);
    expect(await codeOf(client.send(new DescribeInstancesCommand({ InstanceIds: [ID], MaxResults: 10 })))).toBe(
      'InvalidParameterCombination',
    );
  });

  it('filters by state, and refuses more than 200 values and filters it does not know', async () => {
    cloud.world.stop(ID);
    const inState = (...Values: string[]) => idsIn({ Filters: [{ Name: 'instance-state-name', Values }] });
    expect(await inState('stopped', 'terminated')).toEqual([ID]);
    expect(await inState('running')).toEqual([]);
    const many = Array.from({ length: 201 }, (_, index) => `i-${String(index).padStart(17, '0')}`);
    expect(await codeOf(idsIn({ Filters: [{ Name: 'instance-id', Values: many }] }))).toBe('FilterLimitExceeded');
    expect(await codeOf(idsIn({ Filters: [{ Name: 'colour', Values: ['red'] }] }))).toBe('InvalidParameterValue');
  });

  it('pages', async () => {
    const all = [ID];
    for (let index = 0; index < 11; index += 1) {
      const id = `i-${String(index).padStart(17, '2')}`;
      aRunning(id);
      all.push(id);
    }
    const paged: string[][] = [];
    for await (const page of paginateDescribeInstances({ client, pageSize: 5 }, {})) {
      paged.push((page.Reservations ?? []).flatMap(({ Instances = [] }) => Instances.map((one) => one.InstanceId!)));
    }
    expect(paged.map(({ length }) => length)).toEqual([5, 5, 2]);
    expect(paged.flat()).toEqual(all.toSorted());
    expect(await codeOf(idsIn({ NextToken: 'made up' }))).toBe('InvalidNextToken');
    expect(await codeOf(idsIn({ MaxResults: 4 }))).toBe('InvalidParameterValue');
  });

  it('runs, stops, starts and terminates instances', async () => {
    const { Instances = [] } = await client.send(
      new RunInstancesCommand({
        ImageId: 'ami-1',
        InstanceType: 'm7g.medium',
        MinCount: 2,
        MaxCount: 2,
        Placement: { AvailabilityZone: 'us-east-1c' },
        TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'Name', Value: 'a<b' }] }],
      }),
    );
    expect(Instances).toHaveLength(2);
    expect(Instances[0]).toMatchObject({
      InstanceType: 'm7g.medium',
      Placement: { AvailabilityZone: 'us-east-1c' },
      LaunchTime: new Date(T0),
      Tags: [{ Key: 'Name', Value: 'a<b' }],
    });
    const InstanceIds = [Instances[0]!.InstanceId!];
    const stopped = await client.send(new StopInstancesCommand({ InstanceIds }));
    expect(stopped.StoppingInstances).toEqual([
      {
        InstanceId: InstanceIds[0],
        CurrentState: { Code: 80, Name: 'stopped' },
        PreviousState: { Code: 16, Name: 'running' },
      },
    ]);
    const status = (IncludeAllInstances: boolean) =>
      client.send(new DescribeInstanceStatusCommand({ InstanceIds, IncludeAllInstances }));
    expect((await status(false)).InstanceStatuses).toEqual([]);
    expect((await status(true)).InstanceStatuses?.[0]?.InstanceState?.Name).toBe('stopped');
    await client.send(new StartInstancesCommand({ InstanceIds }));
    const ended = await client.send(new TerminateInstancesCommand({ InstanceIds }));
    expect(ended.TerminatingInstances?.[0]?.CurrentState?.Name).toBe('terminated');
    expect(await codeOf(client.send(new StartInstancesCommand({ InstanceIds })))).toBe('IncorrectInstanceState');
    expect(await codeOf(client.send(new TerminateInstancesCommand({ InstanceIds })))).toBe('none');
    expect(await codeOf(client.send(new StopInstancesCommand({ InstanceIds: [UNKNOWN] })))).toBe(
      'InvalidInstanceID.NotFound',
    );
  });

  it('makes, attaches and detaches volumes', async () => {
    const { VolumeId } = await client.send(
      new CreateVolumeCommand({
        AvailabilityZone: 'us-east-1a',
        Size: 8,
        TagSpecifications: [{ ResourceType: 'volume', Tags: [{ Key: 'nodekeeper.dev/cluster', Value: 'edge' }] }],
      }),
    );
    const state = async () => (await client.send(new DescribeVolumesCommand({ VolumeIds: [VolumeId!] }))).Volumes?.[0];
    expect(await state()).toMatchObject({ State: 'available', Attachments: [] });
    await client.send(new AttachVolumeCommand({ VolumeId, InstanceId: ID, Device: '/dev/xvdf' }));
    expect(await state()).toMatchObject({
      State: 'in-use',
      Tags: [{ Key: 'nodekeeper.dev/cluster', Value: 'edge' }],
      Attachments: [{ VolumeId, InstanceId: ID, Device: '/dev/xvdf', State: 'attached' }],
    });
    expect((await client.send(new DetachVolumeCommand({ VolumeId }))).State).toBe('detaching');
    expect(await codeOf(client.send(new DetachVolumeCommand({ VolumeId })))).toBe('IncorrectState');
    expect(await codeOf(client.send(new DescribeVolumesCommand({ VolumeIds: ['vol-00000000deadbeef0'] })))).toBe(
      'InvalidVolume.NotFound',
    );
  });

  it('throttles each action by a bucket that fills again', async () => {
    cloud.setBucket({ burst: 2, refillPerSecond: 1 });
    const ask = () => codeOf(idsIn({}));
    expect([await ask(), await ask(), await ask()]).toEqual(['none', 'none', 'RequestLimitExceeded']);
    expect(await codeOf(client.send(new DescribeVolumesCommand({})))).toBe('none');
    nowMs += 1_000;
    expect([await ask(), await ask()]).toEqual(['none', 'RequestLimitExceeded']);
  });

  it('answers with the configured error', async () => {
    cloud.fail('Unavailable', { calls: 1 });
    expect([await codeOf(idsIn({})), await codeOf(idsIn({}))]).toEqual(['Unavailable', 'none']);
    expect(cloud.trouble).toBeNull();
    expect(await codeOf(client.send(new DescribeInstancesCommand({ DryRun: false })))).toBe('none');
    expect(cloud.requests.get('DescribeInstances')).toBe(3);
  });

  it('wants a signature for its service and region', async () => {
    const answer = await fetch(cloud.endpoint, { method: 'POST', body: 'Action=DescribeInstances' });
    expect(answer.status).toBe(401);
    expect(await answer.text()).toContain('<Code>AuthFailure</Code>');
  });

  it('reports changes of state, also those that happen by themselves', async () => {
    await stop();
    await start({ clock: { nowMs: () => Date.now() }, stoppingMs: 20 });
    aRunning(ID);
    const told: InstanceStateChange[] = [];
    const stopped = new Promise<void>((resolve) => {
      cloud.subscribe((change) => {
        told.push(change);
        if (change.state === 'stopped') resolve();
      });
    });
    await client.send(new StopInstancesCommand({ InstanceIds: [ID] }));
    await stopped;
    expect(told.map(({ instanceId, state }) => [instanceId, state])).toEqual([
      [ID, 'stopping'],
      [ID, 'stopped'],
    ]);
  });

  it('keeps its world in a file', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'cloud-'));
    try {
      const file = join(directory, 'cloud.json');
      await stop();
      await start({ file });
      aRunning(ID);
      await client.send(new StopInstancesCommand({ InstanceIds: [ID] }));
      await stop();
      await start({ file });
      expect(await idsIn({ Filters: [{ Name: 'instance-state-name', Values: ['stopped'] }] })).toEqual([ID]);
      writeFileSync(file, '{');
      await expect(startLocalCloud({ clock: { nowMs: () => 0 }, region: 'r', accountId: 'a', file })).rejects.toThrow(
        StartError,
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
