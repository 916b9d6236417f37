/**
 * Metadata of an instance, as the Kubernetes cloud provider for AWS reports it. The order of addresses:
 *
 * 1. every private IPv4 address of the interfaces in use, by device index
 * 2. the first IPv6 address of each of these interfaces
 * 3. the public address and the DNS names
 *
 * Source: kubernetes/cloud-provider-aws, pkg/providers/v1/aws.go.
 */
import type { InstanceMetadata, NodeAddress } from '../../fleet/instances/instance.ts';
import { regionOfZone } from '../../fleet/instances/provider-id.ts';
import type { DescribedInstance } from './api.ts';

/** Label of the zone's id. Unlike its name, the id means the same location in every account. */
const ZONE_ID_LABEL = 'topology.k8s.aws/zone-id';

export function metadataOf(instance: DescribedInstance, region: string): InstanceMetadata {
  const zone = instance.Placement?.AvailabilityZone ?? '';
  const zoneId = instance.Placement?.AvailabilityZoneId;
  return {
    instanceType: instance.InstanceType ?? '',
    zone,
    region: regionOfZone(zone) ?? region,
    addresses: addressesOf(instance),
    additionalLabels: zoneId === undefined || zoneId === '' ? {} : { [ZONE_ID_LABEL]: zoneId },
  };
}

function addressesOf(instance: DescribedInstance): NodeAddress[] {
  const interfaces = (instance.NetworkInterfaces ?? [])
    .filter(({ Status }) => Status === 'in-use')
    .toSorted((one, other) => (one.Attachment?.DeviceIndex ?? 0) - (other.Attachment?.DeviceIndex ?? 0));
  const internal = [
    ...interfaces.flatMap(({ PrivateIpAddresses }) => (PrivateIpAddresses ?? []).map((ip) => ip.PrivateIpAddress)),
    ...interfaces.map(({ Ipv6Addresses }) => Ipv6Addresses?.[0]?.Ipv6Address),
  ];
  const entries: readonly (readonly [string, string | undefined])[] = [
    ...internal.map((address) => ['InternalIP', address] as const),
    ['ExternalIP', instance.PublicIpAddress],
    ['InternalDNS', instance.PrivateDnsName],
    ['Hostname', instance.PrivateDnsName],
    ['ExternalDNS', instance.PublicDnsName],
  ];
  return entries.flatMap(([type, address]) => (address === undefined || address === '' ? [] : [{ type, address }]));
}
