import { describe, expect, it } from 'vitest';
import type { DescribeById, DescribeInput, Ec2Api, InstancesPage, VolumesPage } from './api.ts';
import { ec2Cloud } from './cloud.ts';
import { Ec2Error } from './errors.ts';

const OURS = '111111111111';
const idOf = (index: number): string => `i-${index.toString(16).padStart(17, '0')}`;
const named = (id: string) => ({ instanceId: id, zone: undefined, region: undefined });
const running = (id: string, more = {}) => ({ InstanceId: id, State: { Name: 'running' }, ...more });
const reservation = (id: string, owner = OURS, more = {}) => ({ OwnerId: owner, Instances: [running(id, more)] });

function aCloud(api: Partial<Ec2Api>, concurrencyMax?: number) {
  const unexpected = async () => {
    throw new Error('not expected');
  };
  return ec2Cloud({
    api: { describeInstances: unexpected, describeVolumes: unexpected, detachVolume: unexpected, ...api },
    region: 'us-east-1',
    accountId: OURS,
    clusterId: 'edge',
    ...(concurrencyMax === undefined ? {} : { concurrencyMax }),
  });
}

const NOT_FOUND = 'InvalidInstanceID.NotFound';
const unknownToEc2 = (): never => {
  throw new Ec2Error(NOT_FOUND);
};

/** Responses by filter and by id. By id no instance is known by default. */
const instancesFrom =
  (
    page: (input: DescribeInput) => InstancesPage,
    byId: (input: DescribeById) => InstancesPage = unknownToEc2,
  ): Ec2Api['describeInstances'] =>
  async (input) =>
    'instanceId' in input ? byId(input) : page(input);

describe('EC2 as the cloud', () => {
  it('requests at most 200 ids per call, by filter', async () => {
    const asked: DescribeInput[] = [];
    const cloud = aCloud({
      describeInstances: instancesFrom((input) => {
        asked.push(input);
        return { Reservations: [] };
      }),
    });
    await cloud.describeInstances(Array.from({ length: 401 }, (_, index) => named(idOf(index))));
    expect(asked.map(({ filter }) => [filter.name, filter.values.length])).toEqual([
      ['instance-id', 200],
      ['instance-id', 200],
      ['instance-id', 1],
    ]);
  });

  it.each<[string, InstancesPage]>([
    ['has no reservations at all', {}],
    ['has an instance without an id', { Reservations: [{ OwnerId: OURS, Instances: [{}] }] }],
  ])('fails the ids of a response that %s', async (_, page) => {
    const cloud = aCloud({ describeInstances: instancesFrom(() => page) });
    const answers = await cloud.describeInstances([named(idOf(1))]);
    expect(answers.get(idOf(1))?.answer).toMatchObject({ kind: 'failed', cause: 'error' });
  });

  it('returns failed for an unknown instance state', async () => {
    const cloud = aCloud({
      describeInstances: instancesFrom(() => ({
        Reservations: [reservation(idOf(1), OURS, { State: { Name: 'hibernating' } })],
      })),
    });
    expect((await cloud.describeInstances([named(idOf(1))])).get(idOf(1))?.answer.kind).toBe('failed');
  });

  it('fails all ids when a later page fails or the pages do not end', async () => {
    const failing = aCloud({
      describeInstances: instancesFrom(({ nextToken }) => {
        if (nextToken !== undefined) throw new Ec2Error('InternalError');
        return { Reservations: [reservation(idOf(1))], NextToken: 'more' };
      }),
    });
    const endless = aCloud({
      describeInstances: instancesFrom(() => ({ Reservations: [reservation(idOf(1))], NextToken: 'more' })),
    });
    for (const cloud of [failing, endless]) {
      const answers = await cloud.describeInstances([named(idOf(1)), named(idOf(2))]);
      expect([...answers.values()].map(({ answer }) => answer.kind)).toEqual(['failed', 'failed']);
    }
  });

  it('returns foreign for every id that a response of another owner lacks', async () => {
    const cloud = aCloud({
      describeInstances: instancesFrom(() => ({ Reservations: [reservation(idOf(1), '222222222222')] })),
    });
    const answers = await cloud.describeInstances([named(idOf(1)), named(idOf(2))]);
    for (const id of [idOf(1), idOf(2)]) expect(answers.get(id)?.answer).toMatchObject({ kind: 'foreign' });
  });

  describe('an instance that the response by filter lacks', () => {
    const missing = instancesFrom.bind(undefined, () => ({ Reservations: [] }));
    const answerById = async (byId: (input: DescribeById) => InstancesPage) => {
      const cloud = aCloud({ describeInstances: missing(byId) });
      return (await cloud.describeInstances([named(idOf(1))])).get(idOf(1))?.answer;
    };
    const failing = (code: string) => () => {
      throw new Ec2Error(code);
    };

    it('is requested by its id, in a call of its own', async () => {
      const asked: DescribeById[] = [];
      const cloud = aCloud({
        describeInstances: instancesFrom(
          () => ({ Reservations: [reservation(idOf(2))] }),
          (input) => {
            asked.push(input);
            return unknownToEc2();
          },
        ),
      });
      const answers = await cloud.describeInstances([1, 2, 3].map((index) => named(idOf(index))));
      expect(asked).toEqual([{ instanceId: idOf(1) }, { instanceId: idOf(3) }]);
      expect([...answers].map(([id, { answer }]) => [id, answer.kind]).toSorted()).toEqual([
        [idOf(1), 'notFound'],
        [idOf(2), 'found'],
        [idOf(3), 'notFound'],
      ]);
    });

    it.each<[string, (input: DescribeById) => InstancesPage, object]>([
      ['NotFound', unknownToEc2, { kind: 'notFound' }],
      [
        'a response without it',
        () => ({ Reservations: [] }),
        {
          kind: 'foreign',
          reason: `EC2 accepts the id ${idOf(1)} and does not return the instance: it is another account's instance`,
        },
      ],
      ['a reservation without it', () => ({ Reservations: [{ OwnerId: OURS, Instances: [] }] }), { kind: 'foreign' }],
      ['the instance', () => ({ Reservations: [reservation(idOf(1))] }), { kind: 'found', state: 'running' }],
      [
        'the instance with another owner',
        () => ({ Reservations: [reservation(idOf(1), '222222222222')] }),
        { kind: 'foreign' },
      ],
      ['another instance', () => ({ Reservations: [reservation(idOf(2))] }), { kind: 'failed', cause: 'error' }],
      ['no reservations at all', () => ({}), { kind: 'failed', cause: 'error' }],
      [
        'an empty page and a token for more',
        () => ({ Reservations: [], NextToken: 'more' }),
        { kind: 'failed', cause: 'error' },
      ],
      ['a malformed id', failing('InvalidInstanceID.Malformed'), { kind: 'failed', cause: 'error' }],
      ['a denied call', failing('UnauthorizedOperation'), { kind: 'failed', cause: 'error' }],
      ['a server error', failing('InternalError'), { kind: 'failed', cause: 'error' }],
      ['a throttle', failing('RequestLimitExceeded'), { kind: 'failed', cause: 'throttled' }],
      ['a timeout', failing('TimeoutError'), { kind: 'failed', cause: 'timeout' }],
    ])('is answered after %s', async (_, byId, answer) => {
      expect(await answerById(byId)).toMatchObject(answer);
    });

    it('is not requested after a throttled call, and the next pass has half as many calls under way', async () => {
      let calls = 0;
      const cloud = aCloud(
        {
          describeInstances: missing(() => {
            calls += 1;
            throw new Ec2Error('Throttling');
          }),
        },
        4,
      );
      const ids = Array.from({ length: 20 }, (_, index) => named(idOf(index)));
      const pass = async () => {
        calls = 0;
        const answers = await cloud.describeInstances(ids);
        for (const { answer } of answers.values()) expect(answer).toMatchObject({ kind: 'failed', cause: 'throttled' });
        return calls;
      };
      expect([await pass(), await pass(), await pass()]).toEqual([4, 2, 1]);
    });

    it('is not requested in a pass with a throttled call by filter', async () => {
      const byId: DescribeById[] = [];
      let filters = 0;
      const cloud = aCloud(
        {
          describeInstances: instancesFrom(
            () => {
              filters += 1;
              if (filters === 2) throw new Ec2Error('RequestLimitExceeded');
              return { Reservations: [] };
            },
            (input) => {
              byId.push(input);
              return unknownToEc2();
            },
          ),
        },
        1,
      );
      const answers = await cloud.describeInstances(Array.from({ length: 401 }, (_, index) => named(idOf(index))));
      expect(byId).toEqual([]);
      for (const { answer } of answers.values()) expect(answer).toMatchObject({ kind: 'failed', cause: 'throttled' });
    });

    it('needs no confirmation for the root device of a volume', async () => {
      const cloud = aCloud({
        describeInstances: missing(() => {
          throw new Error('not expected');
        }),
        describeVolumes: async () => ({
          Volumes: [{ VolumeId: 'vol-1', Attachments: [{ InstanceId: idOf(1), State: 'attached' }] }],
        }),
      });
      expect((await cloud.describeVolumes(['vol-1'])).get('vol-1')).toMatchObject({ kind: 'found' });
    });
  });

  it('halves the calls under way after a throttled pass, and adds one after each pass without throttling', async () => {
    let throttle = true;
    let underWay = 0;
    let most = 0;
    const cloud = aCloud(
      {
        async describeInstances() {
          underWay += 1;
          most = Math.max(most, underWay);
          await Promise.resolve();
          underWay -= 1;
          if (throttle) throw new Ec2Error('RequestLimitExceeded');
          return { Reservations: [] };
        },
      },
      4,
    );
    const ids = Array.from({ length: 2_000 }, (_, index) => named(idOf(index)));
    const pass = async (): Promise<number> => {
      most = 0;
      await cloud.describeInstances(ids);
      return most;
    };
    expect(await pass()).toBe(4);
    expect(await pass()).toBe(2);
    throttle = false;
    const seen = [await pass(), await pass(), await pass(), await pass(), await pass()];
    expect(seen).toEqual([1, 2, 3, 4, 4]);
  });

  it('orders the addresses of interfaces in use by interface and family', async () => {
    const cloud = aCloud({
      describeInstances: instancesFrom(() => ({
        Reservations: [
          reservation(idOf(1), OURS, {
            InstanceType: 'm7g.large',
            Placement: { AvailabilityZone: 'us-west-2-lax-1a', AvailabilityZoneId: 'usw2-lax1-az1' },
            PrivateDnsName: 'ip-10-0-0-1.ec2.internal',
            PublicDnsName: '',
            NetworkInterfaces: [
              {
                Status: 'in-use',
                Attachment: { DeviceIndex: 1 },
                PrivateIpAddresses: [{ PrivateIpAddress: '10.0.1.1' }],
              },
              { Status: 'detaching', PrivateIpAddresses: [{ PrivateIpAddress: '10.0.2.1' }] },
              {
                Status: 'in-use',
                Attachment: { DeviceIndex: 0 },
                PrivateIpAddresses: [{ PrivateIpAddress: '10.0.0.1' }],
                Ipv6Addresses: [{ Ipv6Address: '2001:db8::1' }, { Ipv6Address: '2001:db8::2' }],
              },
            ],
          }),
        ],
      })),
    });
    const { metadata } = (await cloud.describeInstances([named(idOf(1))])).get(idOf(1))!;
    expect(metadata).toMatchObject({
      region: 'us-west-2',
      additionalLabels: { 'topology.k8s.aws/zone-id': 'usw2-lax1-az1' },
    });
    expect(metadata?.addresses).toEqual([
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'InternalIP', address: '10.0.1.1' },
      { type: 'InternalIP', address: '2001:db8::1' },
      { type: 'InternalDNS', address: 'ip-10-0-0-1.ec2.internal' },
      { type: 'Hostname', address: 'ip-10-0-0-1.ec2.internal' },
    ]);
  });

  describe('volumes', () => {
    const attachedTo = (more = {}): VolumesPage => ({
      Volumes: [
        { VolumeId: 'vol-1', Attachments: [{ InstanceId: idOf(1), Device: '/dev/sda1', State: 'attached', ...more }] },
      ],
    });
    const rootOf = async (describeInstances: Ec2Api['describeInstances'], page = attachedTo()) => {
      const cloud = aCloud({ describeInstances, describeVolumes: async () => page });
      return (await cloud.describeVolumes(['vol-1'])).get('vol-1');
    };

    it('recognise the root device by the name that the instance returns', async () => {
      const named = (device: string) =>
        instancesFrom(() => ({ Reservations: [reservation(idOf(1), OURS, { RootDeviceName: device })] }));
      expect(await rootOf(named('/dev/sda1'))).toMatchObject({ attachments: [{ isRootDevice: true }] });
      expect(await rootOf(named('/dev/xvda'))).toMatchObject({ attachments: [{ isRootDevice: false }] });
    });

    it('are failed if the call for the instance fails; without an instance the device name decides', async () => {
      const failing = instancesFrom(() => {
        throw new Ec2Error('InternalError');
      });
      expect(await rootOf(failing)).toMatchObject({ kind: 'failed' });
      const missing = instancesFrom(() => ({ Reservations: [] }));
      expect(await rootOf(missing)).toMatchObject({ attachments: [{ isRootDevice: true }] });
      expect(await rootOf(missing, attachedTo({ Device: '/dev/sdf' }))).toMatchObject({
        attachments: [{ isRootDevice: false }],
      });
    });

    it.each([
      ['IncorrectState', { kind: 'notAttached' }],
      ['InvalidAttachment.NotFound', { kind: 'notAttached' }],
      ['InvalidVolume.NotFound', { kind: 'notAttached' }],
      ['UnauthorizedOperation', { kind: 'refused', code: 'UnauthorizedOperation', message: 'why' }],
      ['UnsupportedOperation', { kind: 'refused', code: 'UnsupportedOperation', message: 'why' }],
      ['OperationNotPermitted', { kind: 'refused', code: 'OperationNotPermitted', message: 'why' }],
      ['InvalidInstanceID.NotFound', { kind: 'failed', cause: 'error', message: 'EC2: InvalidInstanceID.NotFound' }],
      ['RequestLimitExceeded', { kind: 'failed', cause: 'throttled', message: 'EC2: RequestLimitExceeded' }],
      ['TimeoutError', { kind: 'failed', cause: 'timeout', message: 'EC2: TimeoutError' }],
    ])('classify %s of a detach', async (code, outcome) => {
      const cloud = aCloud({
        async detachVolume() {
          throw new Ec2Error(code, 'why');
        },
      });
      expect(await cloud.detachVolume({ volumeId: 'vol-1', instanceId: idOf(1), force: false })).toEqual(outcome);
    });
  });
});
