import { startLocalCloud } from '../../aws-local/cloud/server.ts';
import { memoryCloud } from '../../demo/ec2/cloud.ts';
import { ec2Cloud } from '../../shared/aws/ec2/cloud.ts';
import { sdkEc2Api } from '../../shared/aws/ec2/sdk-api.ts';
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

const overLoopback =
  (options: { readonly pageSizeMax?: number } = {}) =>
  async (setting: CloudSetting): Promise<CloudUnderTest> => {
    const { region, accountId, clusterId } = setting;
    const server = await startLocalCloud({ clock: setting, region, accountId, ...options });
    const api = sdkEc2Api({
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

defineCloudContract('EC2 on loopback', overLoopback());
defineCloudContract('EC2 on loopback, in short pages', overLoopback({ pageSizeMax: 30 }));
