import { describe, expect, it } from 'vitest';
import { awsConnectionFrom, awsHost, endpointOf } from './connection.ts';

describe('the connection of a Lambda', () => {
  const environment = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };

  it('is what its environment holds, a session token and an endpoint of our own among it', () => {
    const more = { AWS_SESSION_TOKEN: 'c', AWS_ENDPOINT_URL_EC2: 'http://e', AWS_ENDPOINT_URL_DYNAMODB: 'http://d' };
    expect(awsConnectionFrom({ ...environment, ...more }, 'AWS_ENDPOINT_URL_EC2')).toEqual({
      region: 'eu-west-1',
      endpoint: 'http://e',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 'c' },
    });
  });

  it('has neither where the variables are absent or empty', () => {
    expect(awsConnectionFrom({ ...environment, AWS_SESSION_TOKEN: '' }, 'AWS_ENDPOINT_URL_EC2')).toEqual({
      region: 'eu-west-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    });
  });

  it('names everything that is missing at once', () => {
    expect(() => awsConnectionFrom({ AWS_REGION: 'x' }, 'AWS_ENDPOINT_URL_EC2')).toThrow(
      new RangeError('missing from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY'),
    );
  });
});

describe('where a service is asked', () => {
  it('is its host in the region', () => {
    expect(endpointOf({ region: 'eu-west-1' }, 'logs').href).toBe('https://logs.eu-west-1.amazonaws.com/');
    expect(awsHost('sts', 'cn-north-1')).toBe('sts.cn-north-1.amazonaws.com.cn');
  });

  it('is an endpoint of our own where there is one', () => {
    expect(endpointOf({ region: 'eu-west-1', endpoint: 'http://127.0.0.1:8000' }, 'logs').host).toBe('127.0.0.1:8000');
  });
});
