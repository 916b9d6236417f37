import { startLocalCloud } from '../../local/cloud/server.ts';
import type { Ec2Api } from '../../shared/adapters/ec2/api.ts';
import { ec2Cloud } from '../../shared/adapters/ec2/cloud.ts';
import { type Ec2Connection, queryEc2Api } from '../../shared/adapters/ec2/query-api.ts';
import { ec2Client, sdkEc2Api } from '../../shared/adapters/ec2/sdk-api.ts';
import { memoryCloud } from '../../shared/adapters/memory/cloud.ts';
import { type CloudSetting, type CloudUnderTest, defineCloudContract } from './cloud.ts';

defineCloudContract('memory', async (setting) => {
  const cloud = memoryCloud({ ...setting, clock: setting });
  return {
    cloud,
    world: cloud.world,
    fail: (trouble, options) => cloud.fail(trouble, options),
    setAnswerDelay: cloud.setAnswerDelay,
    describeCalls: () => cloud.calls().describeInstances,
    close: async () => {},
  };
});

type OpenApi = (connection: Ec2Connection) => Ec2Api & { close(): void };

const overLoopback =
  (openApi: OpenApi, options: { readonly pageSizeMax?: number } = {}) =>
  async (setting: CloudSetting): Promise<CloudUnderTest> => {
    const { region, accountId, clusterId } = setting;
    const server = await startLocalCloud({ clock: setting, region, accountId, ...options });
    const api = openApi({
      region,
      endpoint: server.endpoint,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      maxAttempts: 1,
      requestTimeoutMs: 300,
    });
    return {
      cloud: ec2Cloud({ api, region, accountId, clusterId }),
      world: server.world,
      fail: (trouble, options) => server.fail(trouble, options),
      setAnswerDelay: server.setAnswerDelay,
      describeCalls: () => server.requests.get('DescribeInstances') ?? 0,
      close: async () => {
        api.close();
        await server.stop();
      },
    };
  };

const overSdk: OpenApi = (connection) => {
  const client = ec2Client(connection);
  return { ...sdkEc2Api(client), close: () => client.destroy() };
};

defineCloudContract('EC2 on loopback, its query protocol', overLoopback(queryEc2Api));
defineCloudContract('EC2 on loopback, through the SDK', overLoopback(overSdk));
defineCloudContract('EC2 on loopback, in short pages', overLoopback(queryEc2Api, { pageSizeMax: 30 }));
defineCloudContract('EC2 on loopback, through the SDK in short pages', overLoopback(overSdk, { pageSizeMax: 30 }));
