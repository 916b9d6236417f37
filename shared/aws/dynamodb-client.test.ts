import { describe, expect, it } from 'vitest';
import { clientOptionsFrom, dynamoDbClient } from './dynamodb-client.ts';

describe('the client of a Lambda', () => {
  const environment = { AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };

  it('has the credentials of the environment, including a session token', async () => {
    const options = clientOptionsFrom({ ...environment, AWS_SESSION_TOKEN: 'token' });
    const client = dynamoDbClient(options);
    const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' };
    expect(await client.config.credentials()).toMatchObject(credentials);
    expect(await client.config.region()).toBe('eu-central-1');
    expect(await client.config.maxAttempts()).toBe(3);
    client.destroy();
  });

  it('uses another endpoint if the environment names one', () => {
    const options = clientOptionsFrom({ ...environment, AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:8000' });
    expect(options.endpoint).toBe('http://127.0.0.1:8000');
    expect(clientOptionsFrom(environment).endpoint).toBeUndefined();
  });

  it('bounds each wait, and keeps its connections', async () => {
    const handlerOf = async (more: object) => {
      const client = dynamoDbClient({ ...clientOptionsFrom(environment), ...more });
      const handler = client.config.requestHandler as unknown as { configProvider: Promise<Record<string, unknown>> };
      const config = await handler.configProvider;
      client.destroy();
      return config;
    };
    const bounded = { throwOnRequestTimeout: true };
    const config = await handlerOf({});
    expect(config).toMatchObject({ ...bounded, connectionTimeout: 1_000, requestTimeout: 3_000 });
    expect(config['httpsAgent']).toMatchObject({ keepAlive: true, maxSockets: 32 });
    const other = await handlerOf({ connectionTimeoutMs: 5, requestTimeoutMs: 7, socketsMax: 2 });
    expect(other).toMatchObject({ ...bounded, connectionTimeout: 5, requestTimeout: 7 });
    expect(other['httpsAgent']).toMatchObject({ keepAlive: true, maxSockets: 2 });
  });

  it('does not copy responses for a logger', () => {
    const client = dynamoDbClient(clientOptionsFrom(environment));
    const middleware = client.middlewareStack.identify().map((name) => name.split(' ')[0]);
    expect(middleware).not.toContain('loggerMiddleware');
    expect(middleware.length).toBeGreaterThan(3);
    client.destroy();
  });

  it('names all missing variables at once', () => {
    expect(() => clientOptionsFrom({ AWS_REGION: 'eu-central-1' })).toThrow(
      'missing from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY',
    );
  });
});
