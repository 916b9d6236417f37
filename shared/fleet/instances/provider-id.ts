/**
 * `spec.providerID`: the EC2 instance of a node. Accepted formats, as in cloud-provider-aws: `aws:///<zone>/<instance
 * id>`, `aws://<zone>/<instance id>`, `aws:////<instance id>` and an instance id alone. Any other text is refused with
 * a reason. It is never sent to EC2, which would respond that the instance does not exist.
 */
import { REGION_PATTERN } from '../../aws/connection.ts';

export interface Ec2Instance {
  readonly instanceId: string;
  /** Availability Zone, Local Zone or Wavelength Zone in the providerID. */
  readonly zone: string | undefined;
  /** The region of that zone. */
  readonly region: string | undefined;
}

export type ProviderIdRefusal = 'absent' | 'fargate' | 'otherCloud' | 'malformed';

export type ProviderId =
  | ({ readonly kind: 'ec2' } & Ec2Instance)
  | { readonly kind: 'refused'; readonly refusal: ProviderIdRefusal; readonly reason: string };

/** Instance ids have 17 hexadecimal digits, old ones 8. */
const INSTANCE_ID = /^i-(?:[0-9a-f]{8}|[0-9a-f]{17})$/;
/**
 * us-east-1a, us-gov-west-1b, us-west-2-lax-1a, us-east-1-wl1-bos-wlz-1: the region is the part up to the first number.
 */
const ZONE = new RegExp(`^(${REGION_PATTERN})(?:[a-z]|(?:-[a-z0-9]+)+)$`);

const refused = (refusal: ProviderIdRefusal, reason: string): ProviderId => ({ kind: 'refused', refusal, reason });

/** The region of a zone name; undefined for a text that is not a zone name. */
export const regionOfZone = (zone: string): string | undefined => ZONE.exec(zone)?.[1];

/** Parses a providerID. Never throws. */
export function parseProviderId(providerId: string | undefined): ProviderId {
  if (providerId === undefined || providerId === '') return refused('absent', 'node has no providerID');
  if (INSTANCE_ID.test(providerId)) return { kind: 'ec2', instanceId: providerId, zone: undefined, region: undefined };

  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(providerId);
  if (scheme === null)
    return refused('malformed', `providerID ${JSON.stringify(providerId)} is neither a URL nor an instance id`);
  if (scheme[1] !== 'aws') {
    return refused('otherCloud', `providerID ${JSON.stringify(providerId)} belongs to provider ${scheme[1]}`);
  }

  // aws:///zone/id has an empty host, aws://zone/id has the zone as host. Without empty parts both are [zone, id].
  const parts = providerId.slice('aws://'.length).split('/');
  const named = parts.filter((part) => part !== '');
  const instanceId = named.at(-1) ?? '';
  const zone = named.length === 2 ? named[0] : undefined;
  if (instanceId.startsWith('fargate-') || instanceId.includes('-fargate')) {
    return refused('fargate', `providerID ${JSON.stringify(providerId)} is a Fargate node, which has no EC2 instance`);
  }
  if (named.length === 0 || named.length > 2 || parts.at(-1) === '') {
    return refused('malformed', `providerID ${JSON.stringify(providerId)} is not aws:///<zone>/<instance id>`);
  }
  if (!INSTANCE_ID.test(instanceId)) {
    return refused('malformed', `providerID ${JSON.stringify(providerId)} does not end with an EC2 instance id`);
  }
  if (zone === undefined) return { kind: 'ec2', instanceId, zone: undefined, region: undefined };
  const region = regionOfZone(zone);
  if (region === undefined) {
    return refused('malformed', `providerID ${JSON.stringify(providerId)} has an invalid Availability Zone: ${zone}`);
  }
  return { kind: 'ec2', instanceId, zone, region };
}

export type InstanceScope = { readonly kind: 'ours' } | { readonly kind: 'foreign'; readonly reason: string };

/**
 * Whether EC2 can return the instance to our credentials. It returns no instances of other accounts and regions. Such
 * an instance must not be treated as deleted (D11). An unknown region or account counts as ours.
 */
export function instanceScope(
  instance: { readonly region: string | undefined; readonly accountId: string | undefined },
  ours: { readonly region: string; readonly accountId: string },
): InstanceScope {
  if (instance.region !== undefined && instance.region !== ours.region) {
    return { kind: 'foreign', reason: `instance is in region ${instance.region}, this cluster is in ${ours.region}` };
  }
  if (instance.accountId !== undefined && instance.accountId !== ours.accountId) {
    return {
      kind: 'foreign',
      reason: `instance belongs to account ${instance.accountId}, this cluster to ${ours.accountId}`,
    };
  }
  return { kind: 'ours' };
}
