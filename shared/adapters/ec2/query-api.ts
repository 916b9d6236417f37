/**
 * The calls without the SDK's client: EC2's query protocol over kept connections. For bundles.
 *
 * Questions are sent again once after a timeout, a lost connection or a server's own error, at once and not after a
 * throttle (the next tick asks again). A detach is sent once: a second one would meet the first and read as "not attached".
 *
 * Source: EC2 API reference, "Query requests"; element names as in the responses of DescribeInstances and DescribeVolumes.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type AwsConnection, awsConnectionFrom, endpointOf } from '../aws-connection/connection.ts';
import { requestSigner } from '../aws-connection/signature.ts';
import { childOf, itemsOf, parseXml, textOf, type XmlElement } from '../aws-connection/xml.ts';
import type { DescribeById, DescribedInstance, DescribedVolume, DescribeInput, Ec2Api } from './api.ts';
import { Ec2Error, isRepeatable, MALFORMED_ANSWER } from './errors.ts';

export interface Ec2Connection extends AwsConnection {
  /** Sends of one question at most, the first included. */
  readonly maxAttempts?: number;
  /** Time from sending a request to its whole answer, connecting included. Milliseconds. */
  readonly requestTimeoutMs?: number;
}

export const REQUEST_TIMEOUT_MS = 3_000;
const API_VERSION = '2016-11-15';
/** 200 instances with all their interfaces are far below this, or the answer is not EC2's. */
const ANSWER_CHARACTERS_MAX = 20_000_000;

/** @throws RangeError that names every missing variable at once */
export const ec2ConnectionFrom = (environment: Readonly<Record<string, string | undefined>>): Ec2Connection =>
  awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_EC2');

export function queryEc2Api(
  connection: Ec2Connection,
  options: { /** Server time, for signatures. */ readonly nowMs?: () => number } = {},
): Ec2Api & { close(): void } {
  const { maxAttempts = 2, requestTimeoutMs = REQUEST_TIMEOUT_MS } = connection;
  const nowMs = options.nowMs ?? Date.now;
  const endpoint = endpointOf(connection, 'ec2');
  const secure = endpoint.protocol === 'https:';
  const agent = new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: 8 });
  const sign = requestSigner({
    ...connection,
    host: endpoint.host,
    service: 'ec2',
    contentType: 'application/x-www-form-urlencoded; charset=utf-8',
  });

  async function sendOnce(action: string, parameters: Readonly<Record<string, string>>): Promise<XmlElement> {
    const body = new URLSearchParams({ Action: action, Version: API_VERSION, ...parameters }).toString();
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)({
        host: endpoint.hostname,
        port: endpoint.port === '' ? (secure ? 443 : 80) : endpoint.port,
        method: 'POST',
        path: '/',
        agent,
        headers: { ...sign({ body, nowMs: nowMs() }), 'content-length': Buffer.byteLength(body) },
      });
      const timer = setTimeout(() => outgoing.destroy(new Ec2Error('TimeoutError')), requestTimeoutMs);
      const settle = (error: Error | undefined, answer?: { status: number; text: string }): void => {
        clearTimeout(timer);
        if (error === undefined) resolve(answer!);
        else reject(error);
      };
      outgoing.on('error', settle);
      outgoing.on('response', (incoming) => readAnswer(incoming, settle));
      outgoing.end(body);
    });
    return answerOf(action, status, text);
  }

  async function ask(action: string, parameters: Readonly<Record<string, string>>): Promise<XmlElement> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await sendOnce(action, parameters);
      } catch (error) {
        if (attempt >= maxAttempts || !isRepeatable(error)) throw error;
      }
    }
  }

  return {
    async describeInstances(input) {
      const answer = await ask('DescribeInstances', describeParameters(input));
      return {
        Reservations: itemsOf(answer, 'reservationSet')?.map((reservation) => ({
          OwnerId: textOf(reservation, 'ownerId'),
          Instances: itemsOf(reservation, 'instancesSet')?.map(instanceOf),
        })),
        NextToken: textOf(answer, 'nextToken'),
      };
    },
    async describeVolumes(input) {
      const answer = await ask('DescribeVolumes', describeParameters(input));
      return { Volumes: itemsOf(answer, 'volumeSet')?.map(volumeOf), NextToken: textOf(answer, 'nextToken') };
    },
    async detachVolume({ volumeId, instanceId, force }) {
      await sendOnce('DetachVolume', { VolumeId: volumeId, InstanceId: instanceId, Force: String(force) });
    },
    close: () => agent.destroy(),
  };
}

function describeParameters(input: DescribeInput | DescribeById): Record<string, string> {
  // MaxResults is refused beside an id.
  if ('instanceId' in input) return { 'InstanceId.1': input.instanceId };
  const { filter, nextToken } = input;
  return {
    'Filter.1.Name': filter.name,
    ...Object.fromEntries(filter.values.map((value, index) => [`Filter.1.Value.${index + 1}`, value])),
    MaxResults: '1000',
    ...(nextToken === undefined ? {} : { NextToken: nextToken }),
  };
}

function readAnswer(
  incoming: IncomingMessage,
  settle: (error: Error | undefined, answer?: { status: number; text: string }) => void,
): void {
  let text = '';
  incoming.setEncoding('utf8');
  incoming.on('data', (part: string) => {
    text += part;
    if (text.length > ANSWER_CHARACTERS_MAX) incoming.destroy(new Ec2Error(MALFORMED_ANSWER, 'the answer is too long'));
  });
  incoming.on('error', settle);
  incoming.on('aborted', () => settle(new Ec2Error(MALFORMED_ANSWER, 'the answer was cut')));
  incoming.on('end', () => settle(undefined, { status: incoming.statusCode ?? 0, text }));
}

function answerOf(action: string, status: number, text: string): XmlElement {
  let root: XmlElement;
  try {
    root = parseXml(text);
  } catch (cause) {
    // A proxy's page in place of an answer: its status is all there is to tell.
    if (status >= 500) throw new Ec2Error('ServiceUnavailable', `status ${status}`, { cause });
    throw new Ec2Error(MALFORMED_ANSWER, `status ${status}`, { cause });
  }
  if (status === 200 && root.name === `${action}Response`) return root;
  const error = childOf(childOf(root, 'Errors'), 'Error');
  const code = textOf(error, 'Code');
  if (code === undefined) throw new Ec2Error(status >= 500 ? 'InternalError' : MALFORMED_ANSWER, `status ${status}`);
  throw new Ec2Error(code, textOf(error, 'Message') ?? code);
}

function instanceOf(item: XmlElement): DescribedInstance {
  const launchTime = textOf(item, 'launchTime');
  const placement = childOf(item, 'placement');
  return {
    InstanceId: textOf(item, 'instanceId'),
    InstanceType: textOf(item, 'instanceType'),
    State: { Name: textOf(childOf(item, 'instanceState'), 'name') },
    LaunchTime: launchTime === undefined ? undefined : new Date(launchTime),
    Placement: {
      AvailabilityZone: textOf(placement, 'availabilityZone'),
      AvailabilityZoneId: textOf(placement, 'availabilityZoneId'),
    },
    RootDeviceName: textOf(item, 'rootDeviceName'),
    PrivateDnsName: textOf(item, 'privateDnsName'),
    PublicDnsName: textOf(item, 'dnsName'),
    PublicIpAddress: textOf(item, 'ipAddress'),
    NetworkInterfaces: itemsOf(item, 'networkInterfaceSet')?.map((networkInterface) => ({
      Status: textOf(networkInterface, 'status'),
      Attachment: { DeviceIndex: Number(textOf(childOf(networkInterface, 'attachment'), 'deviceIndex') ?? 0) },
      PrivateIpAddresses: itemsOf(networkInterface, 'privateIpAddressesSet')?.map((address) => ({
        PrivateIpAddress: textOf(address, 'privateIpAddress'),
      })),
      Ipv6Addresses: itemsOf(networkInterface, 'ipv6AddressesSet')?.map((address) => ({
        Ipv6Address: textOf(address, 'ipv6Address'),
      })),
    })),
  };
}

function volumeOf(item: XmlElement): DescribedVolume {
  return {
    VolumeId: textOf(item, 'volumeId'),
    Tags: itemsOf(item, 'tagSet')?.map((tag) => ({ Key: textOf(tag, 'key'), Value: textOf(tag, 'value') })),
    Operator: { Managed: textOf(childOf(item, 'operator'), 'managed') === 'true' },
    Attachments: itemsOf(item, 'attachmentSet')?.map((attachment) => ({
      InstanceId: textOf(attachment, 'instanceId'),
      Device: textOf(attachment, 'device'),
      State: textOf(attachment, 'status'),
      AssociatedResource: textOf(attachment, 'associatedResource'),
      InstanceOwningService: textOf(attachment, 'instanceOwningService'),
    })),
  };
}
