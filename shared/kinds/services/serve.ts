/** Services, Endpoints and EndpointSlices. Agents and kube-proxy route by them. */

import { ageColumn, NONE, nameColumn, selectorColumn, textColumn } from '../../kubernetes/columns.ts';
import { ageOf, labelsCell, nameOf, shortList } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeEndpointSlice, KubeEndpoints, KubeService, ServicePort } from '../types.ts';
import { prepareEndpointSlice, prepareEndpoints, prepareService } from './defaults.ts';
import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from './resource.ts';
import { validateEndpointSlice, validateEndpoints, validateService } from './validate.ts';

function externalCell({ spec = {}, status }: KubeService): string {
  const { externalIPs = [], type } = spec;
  const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip = '', hostname = '' }) => ip || hostname);
  switch (type) {
    case 'ExternalName':
      return spec.externalName ?? NONE;
    case 'LoadBalancer':
      return [...ingress, ...externalIPs].join(',') || '<pending>';
    default:
      return externalIPs.join(',') || NONE;
  }
}

const portsCell = (ports: readonly ServicePort[] = []): string =>
  ports
    .map(({ port = 0, nodePort = 0, protocol = '' }) => `${port}${nodePort > 0 ? `:${nodePort}` : ''}/${protocol}`)
    .join(',') || NONE;

export const services: ResourceDescriptor = servedKind(SERVICES, {
  shortNames: ['svc'],
  categories: ['all'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Type', 'ClusterIP, NodePort, LoadBalancer or ExternalName.'),
    textColumn('Cluster-IP', 'Virtual address.'),
    textColumn('External-IP', 'Addresses for clients from outside.'),
    textColumn('Port(s)', 'Ports of the Service.'),
    ageColumn,
    selectorColumn,
  ],
  row: (object: KubeService, nowMs) => [
    nameOf(object),
    object.spec?.type ?? '',
    object.spec?.clusterIP || NONE,
    externalCell(object),
    portsCell(object.spec?.ports),
    ageOf(object, nowMs),
    labelsCell(object.spec?.selector),
  ],
  prepare: prepareService,
  validate: validateService,
});

/** Addresses with ports, as upstream prints them: the first three. */
function endpointsCell({ subsets = [] }: KubeEndpoints): string {
  const pairs = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip = '' }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip = '' }) => `${ip}:${port}`)),
  );
  return shortList(pairs, 3);
}

export const endpoints: ResourceDescriptor = {
  ...servedKind(ENDPOINTS, {
    shortNames: ['ep'],
    createOnUpdate: true,
    columns: [nameColumn, textColumn('Endpoints', 'Addresses with their ports.'), ageColumn],
    row: (object: KubeEndpoints, nowMs) => [nameOf(object), endpointsCell(object), ageOf(object, nowMs)],
    prepare: prepareEndpoints,
    validate: validateEndpoints,
  }),
  listKind: 'EndpointsList',
};

export const endpointslices: ResourceDescriptor = servedKind(ENDPOINT_SLICES, {
  columns: [
    nameColumn,
    textColumn('AddressType', 'IPv4, IPv6 or FQDN.'),
    textColumn('Ports', 'Ports of the endpoints.'),
    textColumn('Endpoints', 'Addresses of the endpoints.'),
    ageColumn,
  ],
  row: (object: KubeEndpointSlice, nowMs) => [
    nameOf(object),
    object.addressType ?? '',
    object.ports === undefined
      ? '<unset>'
      : shortList(
          object.ports.map(({ port }) => String(port ?? '*')),
          3,
        ),
    shortList(
      (object.endpoints ?? []).flatMap(({ addresses = [] }) => addresses),
      3,
    ),
    ageOf(object, nowMs),
  ],
  prepare: prepareEndpointSlice,
  validate: validateEndpointSlice,
});
