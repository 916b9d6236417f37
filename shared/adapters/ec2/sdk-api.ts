/**
 * The calls through the SDK's client. For processes that are not bundled: the SDK's EC2 client adds 550 KB of schemas to a
 * bundle, for whatever few commands (query-api.ts adds 7).
 */
import {
  DescribeInstancesCommand,
  DescribeVolumesCommand,
  DetachVolumeCommand,
  EC2Client,
  type EC2ClientConfig,
} from '@aws-sdk/client-ec2';
import type { DescribeInput, Ec2Api } from './api.ts';
import { type Ec2Connection, REQUEST_TIMEOUT_MS } from './query-api.ts';

/** Everything the SDK would look up for itself is given, and everything that waits has a bound. */
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
      connectionTimeout: 1_000,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: 8 },
      httpsAgent: { keepAlive: true, maxSockets: 8 },
    },
    ...(endpoint === undefined ? {} : { endpoint }),
  };
  return new EC2Client(config);
}

export function sdkEc2Api(client: EC2Client): Ec2Api {
  const describe = ({ filter, nextToken }: DescribeInput) => ({
    Filters: [{ Name: filter.name, Values: [...filter.values] }],
    MaxResults: 1_000,
    ...(nextToken === undefined ? {} : { NextToken: nextToken }),
  });
  return {
    describeInstances: (input) =>
      client.send(
        new DescribeInstancesCommand('instanceId' in input ? { InstanceIds: [input.instanceId] } : describe(input)),
      ),
    describeVolumes: (input) => client.send(new DescribeVolumesCommand(describe(input))),
    async detachVolume({ volumeId, instanceId, force }) {
      await client.send(new DetachVolumeCommand({ VolumeId: volumeId, InstanceId: instanceId, Force: force }));
    },
  };
}
