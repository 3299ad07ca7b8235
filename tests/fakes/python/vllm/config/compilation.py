import dataclasses


@dataclasses.dataclass
class PassConfig:
    fuse_allreduce_rms: bool | None = None
