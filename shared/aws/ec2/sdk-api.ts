/**
 * The calls to EC2 through the SDK's client. Credentials, region and timeouts are passed in; the SDK looks up nothing.
 *
 * A describe call is sent again once after a timeout, a lost connection, a server error or a throttle. A detach is sent
 * once: a second request could arrive after the first one succeeded and would then fail with "not attached".
 *
 * The SDK instead of requests by hand: an error in a reader of XML could report a living instance as missing. Its
 * 560 KB of schemas are a chunk that is loaded with the first call, so a cold start does not read them.
 */

import {
  DescribeInstancesCommand,
  DescribeVolumesCommand,
  DetachVolumeCommand,
  EC2Client,
  type EC2ClientConfig,
} from '@aws-sdk/client-ec2';
import { defined } from '../../defined.ts';
import type { AwsConnection } from '../connection.ts';
import type { DescribeById, DescribeInput, Ec2Api } from './api.ts';

export interface Ec2Connection extends AwsConnection {
  /** Maximum number of requests per describe call, including the first. Default: 2. */
  readonly maxAttempts?: number;
  /** Time from sending a request to its complete response. Milliseconds. Default: 3,000. */
  readonly requestTimeoutMs?: number;
}

const REQUEST_TIMEOUT_MS = 3_000;
const CONNECTION_TIMEOUT_MS = 1_000;
const SOCKETS_MAX = 8;

export function ec2Client(connection: Ec2Connection): EC2Client {
  const { region, endpoint, credentials, maxAttempts = 2, requestTimeoutMs = REQUEST_TIMEOUT_MS } = connection;
  const config: EC2ClientConfig = {
    region,
    credentials: { ...credentials },
    maxAttempts,
    retryMode: 'standard',
    defaultsMode: 'standard',
    authSchemePreference: [],
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: async () => undefined,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: SOCKETS_MAX },
      httpsAgent: { keepAlive: true, maxSockets: SOCKETS_MAX },
    },
    ...defined({ endpoint }),
  };
  return new EC2Client(config);
}

/** EC2 over one connection; `close` closes its sockets. */
export function sdkEc2Api(connection: Ec2Connection): Ec2Api & { close(): void } {
  const describing = ec2Client(connection);
  const detaching = ec2Client({ ...connection, maxAttempts: 1 });
  return {
    describeInstances: (input) =>
      describing.send(
        new DescribeInstancesCommand('instanceId' in input ? { InstanceIds: [input.instanceId] } : filtered(input)),
      ),
    describeVolumes: (input) => describing.send(new DescribeVolumesCommand(filtered(input))),
    async detachVolume({ volumeId, instanceId, force }) {
      await detaching.send(new DetachVolumeCommand({ VolumeId: volumeId, InstanceId: instanceId, Force: force }));
    },
    close() {
      describing.destroy();
      detaching.destroy();
    },
  };
}

/** EC2 refuses MaxResults together with an id, so only filtered calls have it. */
const filtered = ({ filter, nextToken }: Exclude<DescribeInput, DescribeById>) => ({
  Filters: [{ Name: filter.name, Values: [...filter.values] }],
  MaxResults: 1_000,
  ...defined({ NextToken: nextToken }),
});
