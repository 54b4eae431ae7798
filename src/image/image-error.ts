import { Fault } from "../base/fault.ts";

export type ImageErrorCode = "image_missing" | "image_invalid";

export class ImageError extends Fault<ImageErrorCode> {}
