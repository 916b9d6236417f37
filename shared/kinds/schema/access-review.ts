import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  bool,
  embedded,
  int64,
  kindStruct,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textList,
  textListMap,
  time,
} from '../../kubernetes/schema/schema.ts';
import { accessStatus, nonResourceAttributes, resourceAttributes, userInfo } from './review.ts';

const AUTHENTICATION = 'io.k8s.api.authentication.v1';
const AUTHORIZATION = 'io.k8s.api.authorization.v1';

const tokenReviewSpec = struct(`${AUTHENTICATION}.TokenReviewSpec`, 'The token in question.', {
  token: text('The token.'),
  audiences: textList('Audiences that the token must be for; that of the server if empty.'),
});

const tokenReviewStatus = struct(`${AUTHENTICATION}.TokenReviewStatus`, 'Result of a review.', {
  authenticated: bool('Whether the token is valid.'),
  user: embedded(userInfo, 'User of the token.'),
  audiences: textList('Audiences of the token that were asked for.'),
  error: text('Why the token is not valid.'),
});

export const tokenReview: StructSchema = kindStruct(
  `${AUTHENTICATION}.TokenReview`,
  { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenReview' },
  'TokenReview attempts to authenticate a token to a known user.',
  {
    metadata,
    spec: required(embedded(tokenReviewSpec, 'The token in question.')),
    status: embedded(tokenReviewStatus, 'Result of the review.'),
  },
);

const boundObjectReference = struct(`${AUTHENTICATION}.BoundObjectReference`, 'An object that a token is bound to.', {
  kind: text('Kind of the object.'),
  apiVersion: text('API version of the object.'),
  name: text('Name of the object.'),
  uid: text('UID of the object.'),
});

const tokenRequestSpec = struct(`${AUTHENTICATION}.TokenRequestSpec`, 'What is requested.', {
  audiences: required(textList('Audiences of the token.')),
  expirationSeconds: pointer(int64('Requested validity in seconds.')),
  boundObjectRef: optionalStruct(boundObjectReference, 'Object that the token is bound to.'),
});

const tokenRequestStatus = struct(`${AUTHENTICATION}.TokenRequestStatus`, 'The token.', {
  token: required(text('The token.')),
  expirationTimestamp: required(time('When the token expires.')),
});

export const tokenRequest: StructSchema = kindStruct(
  `${AUTHENTICATION}.TokenRequest`,
  { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
  'TokenRequest requests a token for a given service account.',
  {
    metadata,
    spec: required(embedded(tokenRequestSpec, 'What is requested.')),
    status: embedded(tokenRequestStatus, 'The token.'),
  },
);

const subjectAccessReviewSpec = struct(
  `${AUTHORIZATION}.SubjectAccessReviewSpec`,
  'What a user wants to do; one of the two attributes is set.',
  {
    resourceAttributes: optionalStruct(resourceAttributes, 'A request for a resource.'),
    nonResourceAttributes: optionalStruct(nonResourceAttributes, 'A request for a path.'),
    user: text('Name of the user.'),
    groups: textList('Groups of the user.'),
    extra: textListMap('Further attributes of the user.'),
    uid: text('UID of the user.'),
  },
);

export const subjectAccessReview: StructSchema = kindStruct(
  `${AUTHORIZATION}.SubjectAccessReview`,
  { group: 'authorization.k8s.io', version: 'v1', kind: 'SubjectAccessReview' },
  'SubjectAccessReview checks whether or not a user or group can perform an action.',
  {
    metadata,
    spec: required(embedded(subjectAccessReviewSpec, 'What the user wants to do.')),
    status: embedded(accessStatus, 'The answer.'),
  },
);

export const localSubjectAccessReview: StructSchema = kindStruct(
  `${AUTHORIZATION}.LocalSubjectAccessReview`,
  { group: 'authorization.k8s.io', version: 'v1', kind: 'LocalSubjectAccessReview' },
  'LocalSubjectAccessReview checks whether or not a user or group can perform an action in a given namespace.',
  {
    metadata,
    spec: required(embedded(subjectAccessReviewSpec, 'What the user wants to do.')),
    status: embedded(accessStatus, 'The answer.'),
  },
);
