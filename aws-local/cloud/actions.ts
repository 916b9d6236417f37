/**
 * The actions of EC2 that we serve, over a CloudWorld: parameters in, the content of the response element out.
 *
 * Kept from EC2 because a client may rest on it: an unknown id among the ids fails the whole call, one in a filter is
 * just absent; instances of other accounts are silently absent either way; MaxResults and ids exclude each other;
 * DescribeInstanceStatus returns running instances only.
 *
 * Source: EC2 API reference, the page of each action.
 */
import { randomBytes } from 'node:crypto';
import type { CloudWorld, SeenInstance, SeenVolume } from '../../demo/ec2/cloud-world.ts';
import type { InstanceState, NodeAddress } from '../../shared/fleet/instances/instance.ts';
import { Ec2ApiError } from './ec2-error.ts';
import type { XmlValue } from './xml.ts';

export interface ActionContext {
  readonly world: CloudWorld;
  readonly accountId: string;
  readonly region: string;
  /** Answers show the world of this moment. */
  readonly momentMs: number;
  /** Results on one page, at most. */
  readonly pageSizeMax: number;
}

export type Action = (parameters: Parameters, context: ActionContext) => Readonly<Record<string, XmlValue>>;

export const ACTIONS: Readonly<Record<string, Action>> = {
  DescribeInstances(parameters, context) {
    const ids = parameters.list('InstanceId');
    refusePagesOfIds(ids, parameters);
    const visible = instancesByIds(ids, context);
    const wanted = filtered(visible, parameters.filters(), {
      'instance-id': ({ instanceId }) => [instanceId],
      'instance-state-name': ({ state }) => [state],
      'availability-zone': ({ zone }) => [zone],
    });
    const { items, nextToken } = paged(wanted, ({ instanceId }) => instanceId, parameters, context);
    return {
      reservationSet: items.map((instance) => ({
        reservationId: instance.instanceId.replace('i-', 'r-'),
        ownerId: instance.accountId,
        groupSet: [],
        instancesSet: [instanceXml(instance, context)],
      })),
      nextToken,
    };
  },

  DescribeInstanceStatus(parameters, context) {
    const ids = parameters.list('InstanceId');
    refusePagesOfIds(ids, parameters);
    const all = parameters.text('IncludeAllInstances') === 'true';
    const visible = instancesByIds(ids, context).filter(({ state }) => all || state === 'running');
    const { items, nextToken } = paged(visible, ({ instanceId }) => instanceId, parameters, context);
    return {
      instanceStatusSet: items.map((instance) => {
        const status = { status: instance.state === 'running' ? 'ok' : 'not-applicable' };
        return {
          instanceId: instance.instanceId,
          availabilityZone: instance.zone,
          instanceState: stateXml(instance.state),
          systemStatus: status,
          instanceStatus: status,
        };
      }),
      nextToken,
    };
  },

  RunInstances(parameters, context) {
    const count = Number(parameters.text('MinCount') ?? 1);
    if (!Number.isInteger(count) || count < 1 || count > RUN_INSTANCES_MAX) {
      throw new Ec2ApiError('InvalidParameterValue', `Value (${count}) for parameter minCount is invalid.`);
    }
    const { world, accountId } = context;
    const launched = Array.from({ length: count }, () => {
      const instanceId = newId('i');
      world.put({
        instanceId,
        zone: parameters.text('Placement.AvailabilityZone') ?? `${context.region}a`,
        instanceType: parameters.text('InstanceType') ?? 'm1.small',
        launchedAtMs: world.nowMs,
        tags: tagsFor('instance', parameters),
        addresses: [{ type: 'InternalIP', address: `172.31.${randomBytes(1)[0]}.${randomBytes(1)[0]}` }],
        state: 'pending',
      });
      return world.instance(instanceId, world.nowMs)!;
    });
    return {
      reservationId: newId('r'),
      ownerId: accountId,
      groupSet: [],
      instancesSet: launched.map((instance) => instanceXml(instance, context)),
    };
  },

  StartInstances: (parameters, context) => ordered('start', parameters, context),
  StopInstances: (parameters, context) => ordered('stop', parameters, context),
  TerminateInstances: (parameters, context) => ordered('terminate', parameters, context),

  DescribeVolumes(parameters, context) {
    const ids = parameters.list('VolumeId');
    refusePagesOfIds(ids, parameters);
    checkIds(ids, 'vol', 'InvalidVolumeID.Malformed');
    const { world, momentMs } = context;
    const visible =
      ids.length === 0
        ? world.volumes(momentMs)
        : ids.map((id) => {
            const volume = world.volume(id, momentMs);
            if (volume !== undefined) return volume;
            throw new Ec2ApiError('InvalidVolume.NotFound', `The volume '${id}' does not exist.`);
          });
    const wanted = filtered(visible, parameters.filters(), {
      'volume-id': ({ volumeId }) => [volumeId],
      'attachment.instance-id': ({ attachments }) => attachments.map(({ instanceId }) => instanceId),
    });
    const { items, nextToken } = paged(wanted, ({ volumeId }) => volumeId, parameters, context);
    return { volumeSet: items.map((volume) => volumeXml(volume)), nextToken };
  },

  CreateVolume(parameters, context) {
    const { world } = context;
    const volumeId = newId('vol');
    const zone = parameters.required('AvailabilityZone');
    world.putVolume({ volumeId, zone, tags: tagsFor('volume', parameters) });
    return volumeXml(world.volume(volumeId, world.nowMs)!);
  },

  AttachVolume(parameters, { world }) {
    const volumeId = parameters.required('VolumeId');
    const instanceId = parameters.required('InstanceId');
    if (world.instance(instanceId, world.nowMs) === undefined) throw unknownInstances([instanceId]);
    const device = parameters.required('Device');
    if (!world.attachVolume(volumeId, { instanceId, device })) {
      throw new Ec2ApiError('InvalidVolume.NotFound', `The volume '${volumeId}' does not exist.`);
    }
    return { volumeId, instanceId, device, status: 'attached', attachTime: isoTime(world.nowMs) };
  },

  DetachVolume(parameters, { world }) {
    const volumeId = parameters.required('VolumeId');
    const instanceId = parameters.text('InstanceId');
    checkIds([volumeId], 'vol', 'InvalidVolumeID.Malformed');
    const before = world.volume(volumeId, world.nowMs)?.attachments[0];
    const outcome = world.detachVolume(volumeId, instanceId, parameters.text('Force') === 'true');
    if (outcome !== 'detaching') throw new Ec2ApiError(outcome, detachText(outcome, volumeId, instanceId));
    return {
      volumeId,
      instanceId: instanceId ?? before?.instanceId,
      device: before?.device,
      status: 'detaching',
      attachTime: isoTime(world.nowMs),
    };
  },
};

const RUN_INSTANCES_MAX = 100;
const FILTER_VALUES_MAX = 200;
const RESULTS_MIN = 5;
const RESULTS_MAX = 1_000;

/** Parameters of the query protocol: `Name`, `Name.1`, `Filter.1.Value.2`. */
export class Parameters {
  readonly #values: URLSearchParams;

  constructor(body: string) {
    this.#values = new URLSearchParams(body);
  }

  text(name: string): string | undefined {
    return this.#values.get(name) ?? undefined;
  }

  required(name: string): string {
    const value = this.text(name);
    if (value !== undefined) return value;
    throw new Ec2ApiError('MissingParameter', `The request must contain the parameter ${name}`);
  }

  /** `prefix.1`, `prefix.2`, … up to the first that is missing. */
  list(prefix: string): string[] {
    const values: string[] = [];
    for (
      let value = this.text(`${prefix}.1`);
      value !== undefined;
      value = this.text(`${prefix}.${values.length + 1}`)
    ) {
      values.push(value);
    }
    return values;
  }

  filters(): { readonly name: string; readonly values: readonly string[] }[] {
    const filters: { name: string; values: string[] }[] = [];
    for (
      let name = this.text('Filter.1.Name');
      name !== undefined;
      name = this.text(`Filter.${filters.length + 1}.Name`)
    ) {
      filters.push({ name, values: this.list(`Filter.${filters.length + 1}.Value`) });
    }
    return filters;
  }
}

function filtered<Thing>(
  things: readonly Thing[],
  filters: readonly { readonly name: string; readonly values: readonly string[] }[],
  valuesOf: Readonly<Record<string, (thing: Thing) => readonly string[]>>,
): Thing[] {
  const values = filters.reduce((sum, filter) => sum + filter.values.length, 0);
  if (values > FILTER_VALUES_MAX) {
    throw new Ec2ApiError('FilterLimitExceeded', `The maximum number of filter values is ${FILTER_VALUES_MAX}`);
  }
  let left = [...things];
  for (const filter of filters) {
    const read = valuesOf[filter.name];
    if (read === undefined) throw new Ec2ApiError('InvalidParameterValue', `The filter '${filter.name}' is invalid`);
    const wanted = new Set(filter.values);
    left = left.filter((thing) => read(thing).some((value) => wanted.has(value)));
  }
  return left;
}

/** Before the ids are looked up. */
function refusePagesOfIds(ids: readonly string[], parameters: Parameters): void {
  if (ids.length === 0 || parameters.text('MaxResults') === undefined) return;
  throw new Ec2ApiError('InvalidParameterCombination', 'The parameter maxResults cannot be used with ids');
}

function paged<Thing>(
  things: readonly Thing[],
  keyOf: (thing: Thing) => string,
  parameters: Parameters,
  context: ActionContext,
): { readonly items: readonly Thing[]; readonly nextToken: string | undefined } {
  const given = parameters.text('MaxResults');
  const token = parameters.text('NextToken');
  const results = Number(given ?? RESULTS_MAX);
  if (!Number.isInteger(results) || results < RESULTS_MIN || results > RESULTS_MAX) {
    throw new Ec2ApiError('InvalidParameterValue', `Value ( ${given} ) for parameter maxResults is invalid.`);
  }
  const after = token === undefined ? '' : keyOfToken(token);
  const rest = things.filter((thing) => keyOf(thing) > after);
  const items = rest.slice(0, Math.min(results, context.pageSizeMax));
  const last = items.at(-1);
  return { items, nextToken: last !== undefined && items.length < rest.length ? tokenOf(keyOf(last)) : undefined };
}

const TOKEN_MARK = 'after:';
const tokenOf = (key: string): string => Buffer.from(`${TOKEN_MARK}${key}`).toString('base64');
function keyOfToken(token: string): string {
  const text = Buffer.from(token, 'base64').toString();
  if (!text.startsWith(TOKEN_MARK)) throw new Ec2ApiError('InvalidNextToken', 'The nextToken is invalid.');
  return text.slice(TOKEN_MARK.length);
}

/** The named instances, or all of ours. Throws for an unknown id. */
function instancesByIds(ids: readonly string[], { world, accountId, momentMs }: ActionContext): SeenInstance[] {
  checkIds(ids, 'i', 'InvalidInstanceID.Malformed');
  const ours = ({ accountId: owner }: SeenInstance): boolean => owner === accountId;
  if (ids.length === 0) return world.instances(momentMs).filter(ours);
  const seen = ids.map((id) => world.instance(id, momentMs));
  const unknown = ids.filter((_, index) => seen[index] === undefined);
  if (unknown.length > 0) throw unknownInstances(unknown);
  return seen.filter((instance) => instance !== undefined).filter(ours);
}

function unknownInstances(ids: readonly string[]): Ec2ApiError {
  const text =
    ids.length === 1
      ? `The instance ID '${ids[0]}' does not exist`
      : `The instance IDs '${ids.join(', ')}' do not exist`;
  return new Ec2ApiError('InvalidInstanceID.NotFound', text);
}

function checkIds(ids: readonly string[], prefix: string, code: string): void {
  const malformed = ids.find((id) => !new RegExp(`^${prefix}-(?:[0-9a-f]{8}|[0-9a-f]{17})$`).test(id));
  if (malformed !== undefined) throw new Ec2ApiError(code, `Invalid id: "${malformed}"`);
}

function ordered(
  verb: 'start' | 'stop' | 'terminate',
  parameters: Parameters,
  context: ActionContext,
): Readonly<Record<string, XmlValue>> {
  const { world } = context;
  const ids = parameters.list('InstanceId');
  if (ids.length === 0) parameters.required('InstanceId.1');
  const before = instancesByIds(ids, { ...context, momentMs: world.nowMs });
  return {
    instancesSet: before.map(({ instanceId, state }) => {
      // Terminating what is terminated already is no error; anything else that cannot be done is.
      if (world[verb](instanceId) === 'incorrectState' && verb !== 'terminate') {
        throw new Ec2ApiError(
          'IncorrectInstanceState',
          `The instance '${instanceId}' is not in a state from which it can be ${verb === 'stop' ? 'stopped' : 'started'}.`,
        );
      }
      const now = world.instance(instanceId, world.nowMs)?.state ?? state;
      return { instanceId, currentState: stateXml(now), previousState: stateXml(state) };
    }),
  };
}

const STATE_CODES: Readonly<Record<InstanceState, number>> = {
  pending: 0,
  running: 16,
  'shutting-down': 32,
  terminated: 48,
  stopping: 64,
  stopped: 80,
};
const stateXml = (state: InstanceState) => ({ code: STATE_CODES[state], name: state });
const isoTime = (atMs: number): string => new Date(atMs).toISOString();
const tagsXml = (tags: Readonly<Record<string, string>>) =>
  Object.entries(tags).map(([key, value]) => ({ key, value }));

function instanceXml(instance: SeenInstance, { world }: ActionContext): XmlValue {
  const of = (type: NodeAddress['type']): string[] =>
    instance.addresses.filter((entry) => entry.type === type).map(({ address }) => address);
  const private4 = of('InternalIP').filter((address) => !address.includes(':'));
  const private6 = of('InternalIP').filter((address) => address.includes(':'));
  const ended = instance.state === 'terminated';
  const root = world
    .volumes(world.nowMs)
    .flatMap(({ attachments }) => attachments)
    .find((attachment) => attachment.instanceId === instance.instanceId && attachment.isRootDevice);
  return {
    instanceId: instance.instanceId,
    imageId: 'ami-00000000000000000',
    instanceState: stateXml(instance.state),
    privateDnsName: ended ? '' : (of('InternalDNS')[0] ?? ''),
    dnsName: ended ? '' : (of('ExternalDNS')[0] ?? ''),
    instanceType: instance.instanceType,
    launchTime: isoTime(instance.launchedAtMs),
    placement: { availabilityZone: instance.zone, groupName: '', tenancy: 'default' },
    ...(ended ? {} : { privateIpAddress: private4[0], ipAddress: of('ExternalIP')[0] }),
    architecture: 'arm64',
    rootDeviceType: 'ebs',
    rootDeviceName: root?.device ?? '/dev/xvda',
    tagSet: tagsXml(instance.tags),
    networkInterfaceSet:
      ended || private4.length + private6.length === 0
        ? []
        : [
            {
              networkInterfaceId: instance.instanceId.replace('i-', 'eni-'),
              status: 'in-use',
              privateIpAddress: private4[0],
              attachment: { deviceIndex: 0, status: 'attached' },
              privateIpAddressesSet: private4.map((address, index) => ({
                privateIpAddress: address,
                primary: index === 0,
              })),
              ipv6AddressesSet: private6.map((address) => ({ ipv6Address: address })),
            },
          ],
  };
}

function volumeXml(volume: SeenVolume): Readonly<Record<string, XmlValue>> {
  const { attachments } = volume;
  return {
    volumeId: volume.volumeId,
    size: 8,
    availabilityZone: volume.zone,
    status: attachments.length === 0 ? 'available' : 'in-use',
    attachmentSet: attachments.map((attachment) => ({
      volumeId: volume.volumeId,
      instanceId: attachment.instanceId,
      device: attachment.device,
      status: attachment.state,
      deleteOnTermination: attachment.isRootDevice,
      instanceOwningService: attachment.managedByAws ? 'service.amazonaws.com' : undefined,
    })),
    tagSet: tagsXml(volume.tags),
    volumeType: 'gp3',
  };
}

function detachText(code: string, volumeId: string, instanceId: string | undefined): string {
  switch (code) {
    case 'InvalidVolume.NotFound':
      return `The volume '${volumeId}' does not exist.`;
    case 'InvalidAttachment.NotFound':
      return `The volume '${volumeId}' is not attached to instance '${instanceId}'.`;
    case 'IncorrectState':
      return `The volume '${volumeId}' is in the 'available' state.`;
    case 'OperationNotPermitted':
      return `The volume '${volumeId}' may not be detached: it is the root device of a running instance`;
    default:
      return `The volume '${volumeId}' is managed by a service and cannot be detached.`;
  }
}

function tagsFor(resourceType: string, parameters: Parameters): Record<string, string> {
  const tags: Record<string, string> = {};
  for (let at = 1; parameters.text(`TagSpecification.${at}.ResourceType`) !== undefined; at += 1) {
    if (parameters.text(`TagSpecification.${at}.ResourceType`) !== resourceType) continue;
    for (let index = 1; ; index += 1) {
      const key = parameters.text(`TagSpecification.${at}.Tag.${index}.Key`);
      if (key === undefined) break;
      tags[key] = parameters.text(`TagSpecification.${at}.Tag.${index}.Value`) ?? '';
    }
  }
  return tags;
}

const newId = (prefix: string): string => `${prefix}-${randomBytes(9).toString('hex').slice(0, 17)}`;
