class MPClient:
    def __init__(self, payloads):
        self.core_engines = list(range(len(payloads)))
        for payload in payloads:
            self._apply_ready_response(payload)

    def _apply_ready_response(self, payload):
        pass
