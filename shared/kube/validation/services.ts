/** Service, Endpoints and EndpointSlice (pkg/apis/core/validation, pkg/apis/discovery/validation). */
import type {
  EndpointPort,
  KubeEndpointSlice,
  KubeEndpoints,
  KubeService,
  ServicePort,
  ServiceSpec,
} from '../application-types.ts';
import type { Cause } from '../status.ts';
import { addressFamily } from './addresses.ts';
import { duplicate, forbiddenField, immutable, invalidValue, notSupported, required, tooMany } from './causes.ts';
import { validateLabels, validateObjectMetadata } from './metadata.ts';
import { formatText, labelErrors, type NameRule, subdomainErrors, subdomainName, tooLongText } from './names.ts';
import { portRange } from './probes.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const IP_TEXT = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const NAME_LENGTH_MAX = 63;
const ENDPOINTS_MAX = 1_000;
const PORTS_MAX = 20_000;

const NAME_TEXT = formatText(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
);

/** The name of a Service is a label of DNS that starts with a letter. */
const serviceName: NameRule = (name, prefix) => {
  const checked = prefix && name.endsWith('-') ? `${name.slice(0, -1)}a` : name;
  const errors: string[] = [];
  if (checked.length > NAME_LENGTH_MAX) errors.push(tooLongText(NAME_LENGTH_MAX));
  if (!/^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(checked)) errors.push(NAME_TEXT);
  return errors;
};

function validatePort(port: ServicePort, field: string, isNameRequired: boolean): Cause[] {
  const { name = '', protocol = '', port: number = 0, targetPort } = port;
  const causes: Cause[] = [];
  if (name === '') {
    if (isNameRequired) causes.push(required(`${field}.name`));
  } else for (const error of labelErrors(name)) causes.push(invalidValue(`${field}.name`, name, error));
  causes.push(...portRange(`${field}.port`, number));
  if (protocol === '') causes.push(required(`${field}.protocol`));
  else if (!PROTOCOLS.includes(protocol)) causes.push(notSupported(`${field}.protocol`, protocol, PROTOCOLS));
  if (typeof targetPort === 'number') causes.push(...portRange(`${field}.targetPort`, targetPort));
  return causes;
}

function validatePorts(ports: readonly ServicePort[]): Cause[] {
  const causes: Cause[] = [];
  const names = new Set<string>();
  const numbers = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const field = `spec.ports[${index}]`;
    causes.push(...validatePort(port, field, ports.length > 1));
    const { name = '', protocol = '', port: number = 0 } = port;
    if (name !== '' && names.has(name)) causes.push(duplicate(`${field}.name`, name));
    names.add(name);
    const key = `${protocol}/${number}`;
    if (numbers.has(key)) causes.push(duplicate(field, { protocol, port: number }));
    numbers.add(key);
  }
  return causes;
}

function validateAddresses({ clusterIP = '', externalIPs = [], type }: ServiceSpec): Cause[] {
  const causes: Cause[] = [];
  if (type === 'ExternalName') {
    if (clusterIP !== '') causes.push(forbiddenField('spec.clusterIPs', 'may not be set for ExternalName services'));
  } else if (clusterIP !== '' && clusterIP !== 'None' && addressFamily(clusterIP, 'ip') === undefined) {
    causes.push(invalidValue('spec.clusterIPs[0]', clusterIP, IP_TEXT));
  }
  for (const [index, address] of externalIPs.entries()) {
    if (addressFamily(address, 'ip') !== undefined) continue;
    causes.push(invalidValue(`spec.externalIPs[${index}]`, address, IP_TEXT));
  }
  return causes;
}

export function validateService(service: KubeService, old: KubeService | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(service, old, { namespaced: true, name: serviceName });
  if (subresource === 'status') return causes;
  const spec = service.spec ?? {};
  const { type = '', ports = [], clusterIP = '', sessionAffinity: affinity = '', externalName = '' } = spec;
  const isHeadless = clusterIP === 'None';
  if (ports.length === 0 && !isHeadless && type !== 'ExternalName') causes.push(required('spec.ports'));
  if (type === 'LoadBalancer' && isHeadless) {
    causes.push(invalidValue('spec.clusterIPs[0]', clusterIP, "may not be set to 'None' for LoadBalancer services"));
  }
  if (type === 'NodePort' && isHeadless) {
    causes.push(invalidValue('spec.clusterIPs[0]', clusterIP, "may not be set to 'None' for NodePort services"));
  }
  if (type === '') causes.push(required('spec.type'));
  else if (!TYPES.includes(type)) causes.push(notSupported('spec.type', type, TYPES));
  if (type === 'ExternalName') {
    const name = externalName.replace(/\.$/, '');
    if (name === '') causes.push(required('spec.externalName'));
    else for (const error of subdomainErrors(name)) causes.push(invalidValue('spec.externalName', externalName, error));
  }
  causes.push(...validatePorts(ports), ...validateLabels(spec.selector, 'spec.selector'));
  if (affinity === '') causes.push(required('spec.sessionAffinity'));
  else if (affinity !== 'ClientIP' && affinity !== 'None') {
    causes.push(notSupported('spec.sessionAffinity', affinity, ['ClientIP', 'None']));
  }
  causes.push(...validateAddresses(spec));
  if (old === undefined) return causes;
  const before = old.spec?.clusterIP ?? '';
  const keepsAddress = type !== 'ExternalName' && old.spec?.type !== 'ExternalName' && before !== '';
  return keepsAddress ? [...causes, ...immutable('spec.clusterIPs[0]', clusterIP, before)] : causes;
}

function validateEndpointPorts(ports: readonly EndpointPort[], field: string): Cause[] {
  return ports.flatMap(({ name = '', port = 0, protocol = '' }, index) => {
    const path = `${field}[${index}]`;
    const causes: Cause[] = [];
    if (ports.length > 1 && name === '') causes.push(required(`${path}.name`));
    causes.push(...portRange(`${path}.port`, port));
    if (!PROTOCOLS.includes(protocol)) causes.push(notSupported(`${path}.protocol`, protocol, PROTOCOLS));
    return causes;
  });
}

export function validateEndpoints(endpoints: KubeEndpoints, old: KubeEndpoints | undefined): Cause[] {
  const causes = validateObjectMetadata(endpoints, old, { namespaced: true, name: subdomainName });
  for (const [index, { addresses = [], notReadyAddresses = [], ports = [] }] of (endpoints.subsets ?? []).entries()) {
    const field = `subsets[${index}]`;
    if (addresses.length === 0 && notReadyAddresses.length === 0) {
      causes.push(required(field, 'must specify `addresses` or `notReadyAddresses`'));
    }
    for (const [list, items] of Object.entries({ addresses, notReadyAddresses })) {
      for (const [at, { ip = '' }] of items.entries()) {
        if (addressFamily(ip, 'ip') === undefined) {
          causes.push(invalidValue(`${field}.${list}[${at}].ip`, ip, IP_TEXT));
        }
      }
    }
    causes.push(...validateEndpointPorts(ports, `${field}.ports`));
  }
  return causes;
}

export function validateEndpointSlice(slice: KubeEndpointSlice, old: KubeEndpointSlice | undefined): Cause[] {
  const causes = validateObjectMetadata(slice, old, { namespaced: true, name: subdomainName });
  const { addressType = '', endpoints = [], ports = [] } = slice;
  if (old !== undefined) causes.push(...immutable('addressType', addressType, old.addressType));
  if (addressType === '') causes.push(required('addressType'));
  else if (!ADDRESS_TYPES.includes(addressType)) causes.push(notSupported('addressType', addressType, ADDRESS_TYPES));
  if (endpoints.length > ENDPOINTS_MAX) causes.push(tooMany('endpoints', endpoints.length, ENDPOINTS_MAX));
  if (ports.length > PORTS_MAX) causes.push(tooMany('ports', ports.length, PORTS_MAX));
  for (const [index, { addresses = [] }] of endpoints.entries()) {
    const field = `endpoints[${index}].addresses`;
    if (addresses.length === 0) causes.push(required(field, 'must contain at least 1 address'));
    for (const [at, address] of addresses.entries()) {
      if (addressType === 'FQDN') {
        for (const error of subdomainErrors(address)) causes.push(invalidValue(`${field}[${at}]`, address, error));
      } else if (addressFamily(address, 'ip') !== addressType && ADDRESS_TYPES.includes(addressType)) {
        causes.push(invalidValue(`${field}[${at}]`, address, `must be an ${addressType} address`));
      }
    }
  }
  const names = ports.map(({ name = '' }) => name);
  const seen = new Set<string>();
  for (const [index, name] of names.entries()) {
    if (seen.has(name)) causes.push(duplicate(`ports[${index}].name`, name));
    seen.add(name);
  }
  return causes;
}
